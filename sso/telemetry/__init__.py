"""What is measured: counters, durations of requests, gauges and spans, and their export."""
