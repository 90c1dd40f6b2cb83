# The command line with files, reports and samples, its default compiled ahead; run by a user without rights, in /data.
FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11-slim
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(echo /wheels/*.whl)[files,report,data]" && rm -r /wheels
RUN useradd --create-home --uid 1000 learner && mkdir /data && chown learner /data
USER learner
# Loops are kept for the processor that they were compiled on; another compiles them once more, at its first run.
RUN onlinevi warm --task classes numbers
WORKDIR /data
ENTRYPOINT ["onlinevi"]
CMD ["--help"]
