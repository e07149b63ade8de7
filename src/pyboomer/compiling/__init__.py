"""How Python becomes machine code: kernels, where they are kept, and vectors of eight numbers."""
