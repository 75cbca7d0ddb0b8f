# The server in a small image. The tests run while it is built: an image that exists has passed them.
#   docker build -t stepcast .
FROM debian:bookworm-slim AS build
# Folders whose tests to run where time is short, such as "tests/core tests/server"; default: every test.
ARG TESTS
# Compilers and tests at one time; default: as many as there are processors.
ARG JOBS
# What the programs say as their version, since .git is not here: "$(git describe --always --dirty)", for instance; default: the project's.
ARG VERSION
ENV STEPCAST_VERSION_TEXT=$VERSION
COPY . /src
WORKDIR /src
RUN ./dev test dev $TESTS
RUN ./dev build release && cmake --install build/release --prefix /opt/stepcast --strip

FROM debian:bookworm-slim
RUN apt-get update \
 && apt-get install -y --no-install-recommends libgrpc++1.51 libprotobuf32 libsqlite3-0 libpq5 libspdlog1.10 libprometheus-cpp-core1.0 libcivetweb1 libssl3 libyaml-cpp0.7 zlib1g \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/* \
 && install -d -o 65532 -g 65532 /var/lib/stepcast
COPY --from=build /opt/stepcast/bin/ /usr/local/bin/
# As a number, by which a cluster can tell that it is not root.
USER 65532:65532
# A library that is missing above is missed here, not where the image runs.
RUN stepcastd --version && stepcast --version && stepcast-admission --version
# It writes nowhere else but in /tmp: the root file system may be read-only.
VOLUME /var/lib/stepcast
EXPOSE 50051 9464
# SIGTERM drains: calls in flight are answered before the server leaves.
STOPSIGNAL SIGTERM
# In clear and to everybody, as its first try on a laptop needs it; with --tls-cert, --tls-key and --tokens leave --allow-insecure out.
ENTRYPOINT ["stepcastd"]
CMD ["--listen", "0.0.0.0:50051", "--http-listen", "0.0.0.0:9464", "--data-dir", "/var/lib/stepcast", "--allow-insecure=true"]
