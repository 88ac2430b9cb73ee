# The two commands: make run, make test. The rest is for maintainers.

GO         ?= go
# One set of flags for every desktop build, so that the C parts compile once.
# gles: OpenGL ES, a third of desktop GL's build time, the same windows.
DESKTOP     = -tags gles
HEADLESS    = -tags headless
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
ARTIFACTS  ?= $(CURDIR)/artifacts
FUZZTIME   ?= 20s
SBOM        = github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
GOVULNCHECK = golang.org/x/vuln/cmd/govulncheck@v1.7.0

.PHONY: all run build headless test check fuzz soak sbom vuln reproducible bench demo install clean

all: build

# Builds Nod and starts it: in the tray where there is a display, in this
# terminal where there is none, and as an unattended demo without either.
run:
	@if [ -n "$$DISPLAY$$WAYLAND_DISPLAY" ] && .ci/setup build && $(MAKE) --no-print-directory build; then \
		exec ./nod serve; \
	else \
		$(MAKE) --no-print-directory headless && \
		if [ -t 0 ] && [ -t 1 ]; then \
			echo "make run: no display (or no window libraries): asks come to this terminal" >&2; \
			exec ./nod serve --frontend terminal; \
		else \
			echo "make run: no display and no terminal: playing nod demo unattended" >&2; \
			exec ./nod demo; \
		fi; \
	fi

# Puts a program in its place, whole or not at all, and written in one piece: as
# the linker leaves it, the system keeps it in the smallest pieces, and every
# start takes a tenth longer.
place = new="$(2).$$$$"; said=$$(dd if="$(1)" of="$$new" bs=134217728 2>&1) && \
	chmod 755 "$$new" && mv -f "$$new" "$(2)" || { echo "$$said" >&2; rm -f "$$new"; exit 1; }

# Where the linker leaves it: each make has its own, so that two do not mix.
LINKED = nod.$@.$(shell echo $$PPID)

build:
	$(GO) build $(DESKTOP) -o $(LINKED) .
	@trap 'rm -f $(LINKED)' EXIT; $(call place,$(LINKED),nod)

headless:
	CGO_ENABLED=0 $(GO) build $(HEADLESS) -trimpath -ldflags '-s -w' -o $(LINKED) .
	@trap 'rm -f $(LINKED)' EXIT; $(call place,$(LINKED),nod)

# Everything that must hold. The last lines are go test's own. FUZZTIME=0 leaves
# out the fuzzing, which takes some five minutes on two processors.
test:
	@.ci/setup test
	@$(MAKE) --no-print-directory check
	@$(MAKE) --no-print-directory fuzz
	@mkdir -p "$(ARTIFACTS)"
	NOD_E2E=1 NOD_ARTIFACTS="$(ARTIFACTS)" $(GO) test $(DESKTOP) -race -timeout 20m ./...

# What needs no test run: formatting, vet on three systems, the linter, the
# module file, and a build without display or cgo.
check:
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	$(GO) mod tidy -diff
	$(GO) vet $(DESKTOP) ./...
	GOOS=windows CGO_ENABLED=0 $(GO) vet $(HEADLESS) ./...
	GOOS=darwin CGO_ENABLED=0 $(GO) vet $(HEADLESS) ./...
	CGO_ENABLED=0 $(GO) build $(HEADLESS) -o /dev/null .
	GOFLAGS= $(GO) run $(STATICCHECK) $(DESKTOP) -checks all,-ST1000 ./...

# Every fuzz target for FUZZTIME, two at a time; .ci/fuzz names more settings.
fuzz:
	@GO="$(GO)" .ci/fuzz $(FUZZTIME) $(DESKTOP)

# The long forms of what make test runs in short: crash loops, huge inputs,
# many more random cases.
CRASHES     ?= 250
RAPIDCHECKS ?= 20000
soak:
	NOD_SOAK=1 FORWARDING_CRASHES=$(CRASHES) $(GO) test -count=1 -timeout 2h ./forwarding ./heartbeat ./engine/policy ./engine/shell
	$(GO) test -count=1 -timeout 2h ./engine ./engine/gate ./engine/pattern ./app/board ./notify -rapid.checks=$(RAPIDCHECKS)

# What goes into a release beside the program: a bill of materials in the
# CycloneDX format, of the modules that are linked.
sbom:
	@mkdir -p dist
	CGO_ENABLED=1 GOFLAGS="-tags=gles" $(GO) run $(SBOM) app -json -licenses -std -output dist/nod.cdx.json .

# Known weaknesses in what is linked. VULNDB may name a copy of the database.
vuln:
	GOFLAGS= $(GO) run $(GOVULNCHECK) $(if $(VULNDB),-db $(VULNDB)) $(HEADLESS) .
	GOFLAGS= $(GO) run $(GOVULNCHECK) $(if $(VULNDB),-db $(VULNDB)) $(DESKTOP) .

# Two builds of the commit, from two clones and with two caches, are the same.
reproducible:
	@set -e; d=$$(mktemp -d); trap 'chmod -R u+w "$$d"; rm -rf "$$d"' EXIT; \
	git clone -q --no-hardlinks . "$$d/one"; git clone -q --no-hardlinks "$$d/one" "$$d/two"; \
	for i in one two; do \
		GOCACHE="$$d/cache-$$i" $(MAKE) --no-print-directory -C "$$d/$$i" headless; \
	done; \
	cmp "$$d/one/nod" "$$d/two/nod"; sha256sum "$$d/one/nod" | sed 's/ .*/  nod: the same twice/'

# For this user: the program, its icon and its desktop entry below PREFIX.
PREFIX ?= $(HOME)/.local
APPID   = io.github.nod_agents.nod
install: build
	install -d "$(DESTDIR)$(PREFIX)/bin"
	@$(call place,nod,$(DESTDIR)$(PREFIX)/bin/nod)
	install -D -m 644 assets/$(APPID).desktop "$(DESTDIR)$(PREFIX)/share/applications/$(APPID).desktop"
	sed -i 's|^Exec=nod$$|Exec="$(PREFIX)/bin/nod"|' "$(DESTDIR)$(PREFIX)/share/applications/$(APPID).desktop"
	for s in 16 22 24 48 64 128 256 512; do \
		install -D -m 644 assets/icon/nod-$$s.png "$(DESTDIR)$(PREFIX)/share/icons/hicolor/$${s}x$$s/apps/$(APPID).png"; done

clean:
	rm -rf nod nod.* artifacts dist

# Drives all the real agents, also those that are too slow for make test
# (opencode, pi-subagents), and holds docs/agents.md against what is seen;
# UPDATE=-update writes its table anew.
.PHONY: test-agents
test-agents:
	@.ci/setup test
	.ci/clients install opencode opencode-plugin pi-subagents
	NOD_E2E=1 NOD_AGENTS=1 $(GO) test -count=1 -timeout 25m ./app/agents/livetest $(UPDATE)

# Measures Nod beside its peers, in one run on an otherwise idle machine, and
# writes the figures into docs/performance.md. The peers are required by
# .bench/go.mod only.
bench:
	@.ci/setup build
	.ci/clients install node pi
	cd .bench && $(GO) run . \
		-node "$$(../.ci/clients where node)/node_modules/$$(ls "$$(../.ci/clients where node)/node_modules" | grep ^node-)/bin/node" \
		-clients "$$(../.ci/clients where pi)/node_modules"

# That the benchmarks build, and that all engines still say the same.
.PHONY: bench-check
bench-check:
	cd .bench && $(GO) mod tidy -diff && $(GO) vet ./... && $(GO) test ./...
