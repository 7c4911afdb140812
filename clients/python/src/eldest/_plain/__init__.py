"""The blocking form: each verb runs the asyncio one on an event loop in a separate thread."""
