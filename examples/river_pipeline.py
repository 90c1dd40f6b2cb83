"""A stream of dicts in a River pipeline: features of any unit, words, holes, and a feature that joins halfway."""

# %% Orders as dicts, generated
import random

from river import compose, evaluate, metrics

from onlinevi.river import OnlineVIClassifier

rng = random.Random(0)


def orders(count=5_000):
    for i in range(count):
        x = {"order": i, "price": rng.lognormvariate(3.0, 1.0), "country": rng.choice(["DE", "FR", "JP"])}
        x["age"] = None if rng.random() < 0.1 else rng.uniform(18, 80)
        odds = 0.02 * (x["price"] - 30) + (2.0 if x["country"] == "JP" else -1.0)
        if i >= count // 2:
            x["score"] = rng.gauss(600, 50)
            odds += (x["score"] - 600) / 25
        yield x, odds + rng.gauss(0, 1) > 0


# %% Each predicted, then learned from
stream = list(orders())
model = compose.Discard("order") | OnlineVIClassifier(rule="ngvi")  # one rule: fast, and its weights are easy to read
print(evaluate.progressive_val_score(stream, model, metrics.Accuracy()))

# %% What it knows
classifier = model["OnlineVIClassifier"]
state = classifier.states[True]
for name, mean, std in zip(["intercept", *classifier.names], state.mean, state.std, strict=True):
    print(f"{name:<12} {mean:6.2f} ± {std:.2f} a std")
x = {"price": 20.0, "country": "DE", "score": 680.0}
for change in ({}, {"age": None}, {"score": None}):
    print(f"{change!s:<16} {classifier.predict_proba_one({**x, **change})[True]:.2f}")
