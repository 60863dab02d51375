"""How the web process runs, wherever it is started: `gunicorn backoffice.wsgi` in this folder reads it by itself.

An option on the command line, such as `--bind 127.0.0.1:9000 --workers 3`, overrides a value. Limits of time and size
are those of `backoffice/web_server.py`.
"""

wsgi_app = "backoffice.wsgi"
worker_class = "backoffice.web_server.BufferingWorker"
bind = "127.0.0.1:8000"
workers = 1
threads = 8
timeout = 60  # seconds without a sign of life of a process, which is then replaced
graceful_timeout = 30  # seconds to finish what has begun when the process is asked to stop
