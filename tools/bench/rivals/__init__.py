"""What people use instead of ours, each as its own documentation recommends: measured beside ours, never shipped."""
