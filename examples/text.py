"""Sparse text: messages as hashed words, a million columns of which a row has ten, learned as they come.

The messages are generated. New words come all the time, and both kinds share most of their words.
"""

# %% Messages
import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer

import onlinevi as ovi

rng = np.random.default_rng(0)
TELLING = {True: ["free", "winner", "cash", "prize", "click"], False: ["meeting", "report", "invoice", "monday", "draft"]}


def message(spam):
    common = [f"word{rank:.0f}" for rank in np.floor(rng.random(8) ** (-1 / 0.3))]  # as in Zipf's law
    return " ".join([*common, *rng.choice(TELLING[bool(spam)], rng.integers(0, 3))])


spam = rng.random(5_000) < 0.3
messages = [message(kind) for kind in spam]

# %% Hashing needs no list of words; a row costs its own words, not the million
words = HashingVectorizer(n_features=2**20, norm=None, alternate_sign=False)
learner = ovi.Linear(loss=ovi.Logistic(), rule=ovi.NGVI())
state = learner.init(2**20)
for start in range(0, 5_000, 1_000):
    block = slice(start, start + 1_000)
    state, trace = learner.update_many(state, words.transform(messages[block]), np.where(spam[block], 1.0, -1.0))
    right = np.mean((trace.prediction > 0) == spam[block])
    print(f"messages {start:>4} to {start + 1_000}: {right:.1%} right before the label was seen")

# %% What it is sure of
for text in ("free cash prize", "monday meeting", "zyzzyva quokka"):
    mean, std = learner.predict(state, words.transform([text]))
    print(f"{text:<16} P(spam) {learner.loss.probability(mean, std)[0]:.2f}, log-odds {mean[0]:5.2f} ± {std[0]:.2f}")
