"""Models in other forms, a file for each: JSON, ONNX, Python."""
