# gpurobot, trained on CPUs or NVIDIA GPUs:
#   docker build --tag gpurobot .
#   docker build --tag gpurobot --build-arg TORCH_BACKEND=cu130 .
#   docker run --rm --volume "$PWD/runs:/gpurobot/runs" gpurobot train task=cartpole
# Files in a mounted folder belong to user 1000, or to the user that `docker run --user` names.

FROM debian:bookworm-slim AS python
# cpu, or a version of CUDA such as cu130; with none, what the package index has.
ARG TORCH_BACKEND=cpu
# On a GPU torch's compiler needs a C compiler and Python's header files.
# hadolint ignore=DL3008
RUN apt-get update \
  && case "$TORCH_BACKEND" in cu*) set -- gcc libc6-dev python3-dev ;; esac \
  && apt-get install --yes --no-install-recommends python3 "$@" \
  && rm -rf /var/lib/apt/lists/*

FROM python AS build
# Extras of the package with spaces between, such as "viewer export".
ARG EXTRAS=""
# hadolint ignore=DL3008
RUN apt-get update \
  && apt-get install --yes --no-install-recommends python3-venv \
  && rm -rf /var/lib/apt/lists/* \
  && python3 -m venv /usr/local/uv \
  && /usr/local/uv/bin/pip install --no-cache-dir uv==0.13.9
ENV VIRTUAL_ENV=/usr/local/gpurobot UV_LINK_MODE=copy UV_NO_CACHE=1
WORKDIR /source
# What gpurobot depends on changes seldom: a layer of its own.
COPY pyproject.toml constraints.txt ./
RUN /usr/local/uv/bin/uv venv $VIRTUAL_ENV \
  && for extra in $EXTRAS; do set -- "$@" --extra "$extra"; done \
  && /usr/local/uv/bin/uv pip install "$@" ${TORCH_BACKEND:+--torch-backend="$TORCH_BACKEND"} \
    --constraint constraints.txt --requirement pyproject.toml
COPY . ./
RUN /usr/local/uv/bin/uv pip install --no-deps .

FROM python
COPY --from=build /usr/local/gpurobot /usr/local/gpurobot
ENV PATH="/usr/local/gpurobot/bin:$PATH"
# Any user may write here: runs, and the caches of compiled kernels.
ENV HOME=/gpurobot
WORKDIR /gpurobot
RUN chmod 1777 /gpurobot
USER 1000:1000
# Tasks whose kernels are compiled into the image, with spaces between; they fit processors like this one's.
ARG WARM=""
RUN for task in $WARM; do \
    gpurobot train task="$task" device=cpu max_iterations=0 run_dir=warm && rm -r warm || exit 1; \
  done
ENTRYPOINT ["gpurobot"]
CMD ["--help"]
