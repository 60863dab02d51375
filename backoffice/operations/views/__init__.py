"""The pages of operations: overview and list, one operation, decisions about it, and preparing one."""
