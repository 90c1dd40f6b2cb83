"""Thompson sampling: a belief for each arm, one draw of its weights a round, and the arm whose draw promises most is pulled.

Real data, from scikit-learn: 1,797 images of handwritten digits. A round shows one, an arm is a guess of the digit, and the
only thing told is whether it was right. Whoever always knows is right in every round.
"""

# %% Contexts: 64 pixels and a one
import numpy as np
from sklearn.datasets import load_digits
from sklearn.utils import shuffle

import onlinevi as ovi

images, digits = shuffle(*load_digits(return_X_y=True), random_state=0)
X = np.column_stack([np.ones(len(images)), images / 16.0])

# %% At this rate the implicit step is Bayes' rule for noise of variance 0.05
family = ovi.FullCovariance(prior_std=0.3)
learner = ovi.Linear(loss=ovi.Squared(), rule=ovi.Implicit(rate=10.0), family=family)


def thompson(arms, x, rng):
    return np.argmax([family.sample(state.belief, rng) @ x for state in arms])


def greedy(arms, x, rng):
    return np.argmax([state.mean @ x for state in arms])


def at_random(arms, x, rng):
    return rng.integers(len(arms))


# %% Play: only the arm that was pulled learns
def regret(choose, seed=0):
    rng, arms, right = np.random.default_rng(seed), [learner.init(X.shape[1]) for _ in range(10)], []
    for x, digit in zip(X, digits, strict=True):
        arm = choose(arms, x, rng)
        right.append(arm == digit)
        arms[arm], _ = learner.update(arms[arm], x, float(right[-1]))
    return np.cumsum(np.logical_not(right))


rounds = [100, 500, 1_000, len(X)]
print("wrong after" + "".join(f"{count:>6}" for count in rounds))
for choose in (thompson, greedy, at_random):
    wrong = regret(choose)
    print(f"{choose.__name__:<11}" + "".join(f"{wrong[count - 1]:>6}" for count in rounds))
