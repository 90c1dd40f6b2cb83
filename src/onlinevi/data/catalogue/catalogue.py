"""Every data set: what it is, whose it is, where it may be had, and the checksum of its content."""

from __future__ import annotations

import gzip
import importlib

import numpy as np

from onlinevi.data.catalogue import tables
from onlinevi.data.catalogue.entry import Entry, Origin, Package, StoredFile, Table
from onlinevi.data.catalogue.storage import EXTRA

NO_LICENCE = "no licence stated"
PIMA = ("pregnancies", "glucose", "blood_pressure", "skin_thickness", "insulin", "bmi", "diabetes_pedigree", "age")
BOSTON = ("crim", "zn", "indus", "chas", "nox", "rm", "age", "dis", "rad", "tax", "ptratio", "b", "lstat")
CALIFORNIA = (
    "longitude",
    "latitude",
    "housing_median_age",
    "total_rooms",
    "total_bedrooms",
    "population",
    "households",
    "median_income",
)
ELECTRICITY = ("date", "day", "period", "nswprice", "nswdemand", "vicprice", "vicdemand", "transfer")
COVER = (
    "elevation",
    "aspect",
    "slope",
    "horizontal_distance_to_hydrology",
    "vertical_distance_to_hydrology",
    "horizontal_distance_to_roadways",
    "hillshade_9am",
    "hillshade_noon",
    "hillshade_3pm",
    "horizontal_distance_to_fire_points",
    *(f"wilderness_area_{number}" for number in range(1, 5)),
    *(f"soil_type_{number}" for number in range(1, 41)),
)
CELL = (
    "radius",
    "texture",
    "perimeter",
    "area",
    "smoothness",
    "compactness",
    "concavity",
    "concave points",
    "symmetry",
    "fractal dimension",
)
BREAST = (*(f"mean {what}" for what in CELL), *(f"{what} error" for what in CELL), *(f"worst {what}" for what in CELL))


def _breast() -> Table:
    """Breast Cancer Wisconsin: benign is +1."""
    bunch = importlib.import_module("sklearn.datasets").load_breast_cancer()
    return Table(bunch.data, np.where(bunch.target == 1, 1.0, -1.0))


def _boston() -> Table:
    return Table(*importlib.import_module("mlxtend.data").boston_housing_data())


_ENTRIES = (
    Entry("toy", ("x1", "x2"), "two Gaussian classes, generated", "none needed", draw=tables.toy),
    Entry(
        "breast",
        BREAST,
        "Breast Cancer Wisconsin (Diagnostic), UCI",
        "CC BY 4.0: W. Wolberg, O. Mangasarian, N. Street, W. Street",
        package=Package(
            "sklearn", "scikit-learn", EXTRA, _breast, "32a42d9eaa54642a6ec7f9daea94c3ee2936d37ba01ce2f9e9f9dca1e1b686a7"
        ),
    ),
    Entry(
        "pima",
        PIMA,
        "Pima Indians Diabetes, NIDDK",
        NO_LICENCE,
        file=StoredFile(
            "pima.csv",
            "c62fdc4685d8e47c2a80e2303f88caa99afaeeadea58873fcafffcf288c3c7be",
            tables.pima,
            (
                Origin(
                    "https://raw.githubusercontent.com/jbrownlee/Datasets/master/pima-indians-diabetes.csv",
                    tables.add_header((*PIMA, "outcome")),
                ),
            ),
        ),
    ),
    Entry(
        "cover",
        COVER,
        "Covertype, UCI",
        "reuse unlimited with retention of the notice: copyright Jock A. Blackard and Colorado State University",
        file=StoredFile(
            "covtype.data.gz",
            "0a9371cef7c964b5475d6053cc3e0894a5aa6f65ad1ed3ecb01c45aa96217945",
            tables.cover,
            (
                Origin("https://archive.ics.uci.edu/ml/machine-learning-databases/covtype/covtype.data.gz"),
                Origin("https://ndownloader.figshare.com/files/5976039"),
            ),
            keep_parsed=True,
        ),
    ),
    Entry(
        "boston",
        BOSTON,
        "Boston housing, StatLib",
        NO_LICENCE,
        file=StoredFile(
            "boston.csv",
            "dabe774132cf1f35464a048f213b1d4f39f64ad9efb1157d64d457702f72e19b",
            tables.housing,
            (Origin("https://lib.stat.cmu.edu/datasets/boston", tables.statlib_boston((*BOSTON, "medv"))),),
        ),
        package=Package(
            "mlxtend",
            "mlxtend",
            "pip install mlxtend",
            _boston,
            "a452688f7de3e21b6013d6c370ad53e04c3181c33ad9f0dd91b8b2f67317e787",
        ),
    ),
    Entry(
        "california",
        CALIFORNIA,
        "California housing, StatLib",
        NO_LICENCE,
        file=StoredFile(
            "california_housing.csv",
            "7bbf62a63120b1968850c6a618fb82def6cd948a7c3dda73900d57eed63d1ef9",
            tables.housing,
            (
                Origin(
                    "https://ndownloader.figshare.com/files/5976036",
                    tables.california_archive((*CALIFORNIA, "median_house_value")),
                ),
            ),
        ),
    ),
    Entry(
        "a9a",
        tuple(str(number) for number in range(1, tables.A9A_FEATURES + 1)),
        "Adult in binary features, LIBSVM",
        "CC BY 4.0 for Adult: B. Becker, R. Kohavi, UCI",
        file=StoredFile(
            "a9a.gz",
            "7ba53cccb27e2e525f0fb173e1f446d49856e3fb007eb43be4ec6d0f5b3335ca",
            tables.a9a,
            (Origin("https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/a9a", gzip.compress),),
        ),
    ),
    Entry(
        "electricity",
        ELECTRICITY,
        "Elec2, M. Harries, scaled to [0, 1]",
        NO_LICENCE,
        file=StoredFile(
            "electricity.zip",
            "c10a416790ef8ab96089e5adfd2febb7c9cec72bd80dfecb2342f2283b86b88a",
            tables.electricity,
            (Origin("https://maxhalford.github.io/files/datasets/electricity.zip"),),
        ),
    ),
)
CATALOGUE = {entry.name: entry for entry in _ENTRIES}
