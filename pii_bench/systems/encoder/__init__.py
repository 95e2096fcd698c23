"""One pretrained encoder, fine-tuned for all three questions that masking asks of a text.

Where is personal information and of which type; which of it does a query need, read together
with the text; whose is it. `train` needs torch, `reader` only onnxruntime and tokenizers.
"""
