"""A bandit learns from the reward of what it chose alone, and a log of its choices tells what others would have earned.

Real data, from scikit-learn: 1,797 images of handwritten digits. A round shows one, an arm is a guess of the digit, and the
only thing told, twenty rounds later, is whether it was right.
"""

# %% Contexts: 64 pixels, in their order
from sklearn.datasets import load_digits
from sklearn.utils import shuffle

from onlinevi.bandit import Bandit, Greedy, Thompson, Uniform, replay, value

images, digits = shuffle(*load_digits(return_X_y=True), random_state=0)

# %% Play: Thompson sampling, the greedy choice, and chance; only the arm that was chosen learns
log = []
print("wrong after   500  1000  1797")
for policy in (Thompson(), Greedy(explore=0.0), Uniform()):
    keep = log.append if isinstance(policy, Uniform) else None
    played = replay(Bandit(range(10), policy=policy, log=keep), images, digits, delay=20)
    wrong = (1 - played.earned).cumsum()
    print(f"{policy.name:<11}" + "".join(f"{wrong[count - 1]:>6.0f}" for count in (500, 1000, 1797)))
print(f"a linear policy, fitted with all answers known: {len(images) * (1 - played.best_linear):.0f} wrong")

# %% Ask the log of chance: would this rule have earned more, and are ten rounds in a hundred enough to say so?
taught = Bandit(range(10), policy=Greedy(explore=0.0))
replay(taught, images[:900], digits[:900])
found = value(log[900:], lambda decision: taught.probabilities(decision.context))
print(f"taught on the first 900, on the others: {found}")
print(f"more than chance by {found.gain.lower:.2f} to {found.gain.upper:.2f}")
