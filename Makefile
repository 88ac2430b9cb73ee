# The two commands: make run, make test. The rest is for maintainers.

GO         ?= go
# One set of flags for every desktop build, so that the C parts compile once.
# gles: OpenGL ES, a third of desktop GL's build time, the same windows.
DESKTOP     = -tags gles
HEADLESS    = -tags headless
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
ARTIFACTS  ?= $(CURDIR)/artifacts
FUZZTIME   ?= 60s

.PHONY: all run build headless test check fuzz bench demo install clean

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

build:
	$(GO) build $(DESKTOP) -o nod .

headless:
	CGO_ENABLED=0 $(GO) build $(HEADLESS) -trimpath -ldflags '-s -w' -o nod .

# Everything that must hold. The last lines are go test's own.
test:
	@.ci/setup test
	@$(MAKE) --no-print-directory check
	@mkdir -p "$(ARTIFACTS)"
	NOD_E2E=1 NOD_ARTIFACTS="$(ARTIFACTS)" $(GO) test $(DESKTOP) -race -timeout 20m ./...

# What needs no test run: formatting, vet on three systems, the linter, the
# module file, and a build without display or cgo.
check:
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	$(GO) mod tidy -diff
	$(GO) vet $(DESKTOP) ./...
	CGO_ENABLED=0 $(GO) build $(HEADLESS) -o /dev/null .
	GOFLAGS= $(GO) run $(STATICCHECK) $(DESKTOP) -checks all,-ST1000 ./...

# For this user: the program, its icon and its desktop entry below PREFIX.
PREFIX ?= $(HOME)/.local
APPID   = io.github.nod_agents.nod
install: build
	install -D -m 755 nod "$(DESTDIR)$(PREFIX)/bin/nod"
	install -D -m 644 assets/$(APPID).desktop "$(DESTDIR)$(PREFIX)/share/applications/$(APPID).desktop"
	sed -i 's|^Exec=nod$$|Exec="$(PREFIX)/bin/nod"|' "$(DESTDIR)$(PREFIX)/share/applications/$(APPID).desktop"
	for s in 16 22 24 48 64 128 256 512; do \
		install -D -m 644 assets/icon/nod-$$s.png "$(DESTDIR)$(PREFIX)/share/icons/hicolor/$${s}x$$s/apps/$(APPID).png"; done

clean:
	rm -rf nod artifacts dist

# Drives the real agents through their hooks, and holds docs/agents.md against
# what is seen; UPDATE=-update writes its table anew.
.PHONY: test-agents
test-agents:
	.ci/clients install node claude codex gemini copilot opencode opencode-plugin
	NOD_AGENTS=1 $(GO) test -count=1 -timeout 25m ./app/agents/livetest $(UPDATE)
