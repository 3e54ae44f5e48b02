"""Load on the console: readers of changes and requests for answers, beside a job."""
