FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY prompts prompts
COPY data data
COPY pii_bench pii_bench
RUN python -m venv /opt/pii-bench && /opt/pii-bench/bin/pip install --no-cache-dir ".[ocr,web]"

FROM python:3.11-slim
RUN apt-get update && apt-get install --yes --no-install-recommends tesseract-ocr && rm -rf /var/lib/apt/lists/*
RUN useradd --system --uid 10001 --home-dir /data --create-home pii-bench
COPY --from=build /opt/pii-bench /opt/pii-bench
ENV PATH=/opt/pii-bench/bin:$PATH PYTHONDONTWRITEBYTECODE=1
WORKDIR /data
VOLUME /data
USER 10001
EXPOSE 8300
HEALTHCHECK --start-period=30s CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8300/health')"]
ENTRYPOINT ["pii-bench", "serve"]
CMD ["--host", "0.0.0.0"]
