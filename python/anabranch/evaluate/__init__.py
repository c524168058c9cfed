"""Evaluation of congestion controls and queues by RFC 9743, RFC 5166 and RFC 7928."""
