"""How the settings that the paper leaves open are read: the scaling of its data, and its network."""

from __future__ import annotations

from dataclasses import dataclass

from onlinevi.paper.network import NETWORKS
from onlinevi.paper.panels import SCALINGS, Panel, Scaling, Stream, loaded, ordered, prepared

LINEAR = "linear"


@dataclass(frozen=True)
class Reading:
    """One way to read section 5: ``--scaling`` and ``--network`` of the command."""

    scaling: Scaling = "standard-row"
    network: str = "width-5"

    def __post_init__(self) -> None:
        for name, known in (("scaling", SCALINGS), ("network", tuple(NETWORKS))):
            if (value := getattr(self, name)) not in known:
                raise ValueError(f"{name}={value!r}: needs one of {', '.join(known)}")

    def __str__(self) -> str:
        return f"{self.scaling}, {self.network}"

    @property
    def moments_run(self) -> bool:
        """Whether the scaling follows the order of the stream."""
        return self.scaling == "running-row"

    def model_of(self, panel: Panel) -> str:
        """What predicts in this panel."""
        return self.network if panel.network else LINEAR

    def streams_differ(self, panel: Panel) -> bool:
        """Whether each seed has events of its own, not only an order of the same: then each has a line of its own."""
        return panel.drawn or self.moments_run

    def in_file_order(self, panel: Panel, seed: int) -> Stream:
        """The data of a panel, prepared; but as they are where moments run."""
        stream = loaded(panel, seed)
        return stream if self.moments_run else self._prepared(panel, stream)

    def in_order(self, panel: Panel, file_order: Stream, seed: int) -> Stream:
        """What ``in_file_order`` gave, in the order of this seed and prepared."""
        stream = ordered(panel, file_order, seed)
        return self._prepared(panel, stream) if self.moments_run else stream

    def _prepared(self, panel: Panel, stream: Stream) -> Stream:
        return prepared(panel, stream, self.scaling, constant=panel.network and not NETWORKS[self.network].biases)


READINGS = (
    Reading("standard-row", "width-5"),
    Reading("running-row", "width-5"),
    Reading("row", "width-50"),
    Reading("minmax-row", "width-5"),
    Reading("none", "width-5"),
)
"""The main one first: the others are shown beside it, with their verdicts."""
