"""Fine-tuning jobs: what they may cost, their folders, and the thread that looks after them."""
