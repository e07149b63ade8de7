"""The engine of a GPU: rules are learned from sums over bins by CUDA kernels, without a host in the loop."""
