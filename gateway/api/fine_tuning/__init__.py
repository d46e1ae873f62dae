"""Fine-tuning jobs in OpenAI's shapes; training happens here, under a privacy budget."""
