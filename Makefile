# The front door. `make demo` and `make test` install the Debian packages they need (as root or through sudo).
# meson and ninja do the building; each lane of the tests has its own build folder below build/.

PYTHON ?= /usr/bin/python3
PREFIX ?= /usr/local
SEEDS ?= 300
FUZZ_SECONDS ?= 20

.PHONY: all demo image deb release test test-cluster bench fuzz lint install clean
all: build/drydock

.PHONY: deps
deps:
	@tools/deps build

# The product: optimised, assertions on, without the known bugs that the swarm must find.
.PHONY: product
product: deps
	@tools/configure build/release -Dbuildtype=debugoptimized --prefix=$(PREFIX)
	@tools/build build/release
	@ln -sf release/drydock build/drydock
	@ln -sf release/drydock-agent build/drydock-agent
	@ln -sf release/drydock build/kubectl-drydock
	@ln -sf release/drydock build/kubectl_complete-drydock

# The swarm has the known bugs compiled in, so its objects are of their own.
.PHONY: build/swarm
build/swarm: deps
	@tools/configure build/sim -Dbuildtype=debugoptimized -Dmutations=true
	@tools/build build/sim tests/swarm/swarm
	@ln -sf sim/tests/swarm/swarm build/swarm

.PHONY: build/drydock
build/drydock: product build/swarm

demo: product
	@build/drydock demo

# build/drydock-image.tar, for containerd and registries, and what is in it as SPDX.
image: product
	@tools/image

# build/deb: drydock, kubectl-drydock, libdrydock0, libdrydock-dev.
deb:
	@tools/deps package
	@tools/deb

# build/dist: everything that is handed out, with its sums and what has changed.
release: product
	@tools/deps package
	@tools/release

test:
	@tools/deps test lint package
	@tools/test

test-cluster:
	@tools/deps test
	@tools/test-cluster

bench: product
	@tools/deps test
	@tools/build build/release bench-drain
	@$(PYTHON) bench/run
	@$(PYTHON) bench/drain
	@$(PYTHON) bench/bridge
	@$(PYTHON) bench/attacks
	@$(PYTHON) bench/operations --nodes 100

fuzz:
	@tools/deps test
	@tools/configure build/fuzz -Dbuildtype=debugoptimized -Dtests=true -Dfuzz=true -Db_sanitize=address,undefined -Db_lundef=false
	@tools/build build/fuzz
	@tests/fuzz/run build/fuzz $(FUZZ_SECONDS)

lint:
	@tools/deps lint
	@tools/lint

install: product
	@ninja -C build/release --quiet install

clean:
	rm -rf build
