"""The blocking form: each verb runs the asyncio one on a loop in a thread of its own."""
