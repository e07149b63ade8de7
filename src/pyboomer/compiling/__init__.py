"""How Python becomes machine code: kernels, what depends on a kind, inner code, and vectors of eight numbers."""
