# One static binary and nothing else. `scripts/image` builds the binary and passes a folder with it as the context; the
# build pulls and downloads nothing.
FROM scratch
COPY eldest /eldest
# A volume takes over the owner of the folder that it covers.
COPY --chown=65532:65532 data /data
USER 65532:65532
ENV ELDEST_DATA=/data
VOLUME /data
EXPOSE 9000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=2s --timeout=2s --start-period=10s --retries=3 CMD ["/eldest", "healthcheck", "--alive"]
ENTRYPOINT ["/eldest"]
