"""An estimator for scikit-learn: cross-validated, searched over in a pipeline, and fed batch by batch."""

# %% Real data, from scikit-learn
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import shuffle

from onlinevi.sklearn import OnlineVIClassifier

data = load_breast_cancer()
X, y = shuffle(data.data, data.target_names[data.target], random_state=0)

# %% As it is
scores = cross_val_score(OnlineVIClassifier(), X, y, cv=5)
print(f"nothing tuned, nothing scaled, one pass: accuracy {scores.mean():.3f}")

# %% In a pipeline, searched over
pipeline = make_pipeline(SelectKBest(), OnlineVIClassifier(rule="implicit"))
grid = GridSearchCV(pipeline, {"selectkbest__k": [5, 10, 20]}, scoring="neg_log_loss", cv=5).fit(X, y)
print(f"best of the pipelines: {grid.best_params_}, log-loss {-grid.best_score_:.3f}")

# %% Batch by batch
model = OnlineVIClassifier(rule="implicit")
for block in np.array_split(np.arange(len(y)), 6):
    if hasattr(model, "classes_"):  # the batch is new: it tests before it teaches
        print(f"{block[0]:>4} rows seen, the next {len(block)}: accuracy {model.score(X[block], y[block]):.3f}")
    model.partial_fit(X[block], y[block], classes=["benign", "malignant"])
whole = OnlineVIClassifier(rule="implicit").fit(X, y)
print("the same as one fit, to the bit:", np.array_equal(model.predict_proba(X), whole.predict_proba(X)))
