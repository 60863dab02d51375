"""The pages of reports, exports and schedules."""
