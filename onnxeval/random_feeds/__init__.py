"""Random inputs that a model can take, found by looking at what its nodes do with them.

Every node that reads an input, directly or through others, has its wishes (`hints`): an index inside an axis, a shape
that a Reshape can make, an argument of Log above 0. They are carried back to the graph's inputs (`carriers`,
`analysis`), and values are drawn that meet them (`drawing`).
"""

from onnxeval.random_feeds.making import Made, make_feeds

__all__ = ["Made", "make_feeds"]
