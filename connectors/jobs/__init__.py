"""Where fine-tuning jobs run: one interface, two engines."""
