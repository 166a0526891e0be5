# The desk: web server, workers, schedule and commands in one image. No secret is in it, and it runs as nobody
# in particular on a root that may be read-only; what it keeps is in /data. See docs/deploying.md.
ARG PYTHON=3.11-slim-bookworm

FROM python:${PYTHON} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
RUN python -m venv /opt/desk/venv
COPY requirements.txt /tmp/
# Wheels alone, each with a known hash: nothing is built and no code of a package runs here.
RUN /opt/desk/venv/bin/pip install --require-hashes --only-binary :all: --requirement /tmp/requirements.txt
WORKDIR /opt/desk
COPY manage.py LICENSE ./
COPY llmgw_admin llmgw_admin
COPY sizing sizing
COPY templates templates
COPY --chmod=0555 deploy/container/healthy.py /opt/desk/healthy.py
RUN /opt/desk/venv/bin/python -m compileall -q /opt/desk

FROM python:${PYTHON}
RUN groupadd --gid 10001 desk \
    && useradd --uid 10001 --gid desk --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin desk \
    && install --directory --owner desk --group desk --mode 0700 /data
COPY --from=build /opt/desk /opt/desk
WORKDIR /opt/desk
ENV PATH=/opt/desk/venv/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    DATA_DIR=/data
USER 10001:10001
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 CMD ["python", "healthy.py"]
CMD ["gunicorn", "--config", "python:llmgw_admin.web_server", "llmgw_admin.wsgi"]
