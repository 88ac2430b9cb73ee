// Package e2e has no code of its own: its tests drive the built program on a
// real desktop, with real agents that ask.
//
// A test has a machine to itself: a session bus, an X server with a window
// manager, a notification server whose buttons are clicked, a tray host that
// reads and clicks the menu, a home directory, and children: unmodified agents
// from npm that talk to a model played by testdata/mocks.
//
// The tests run with NOD_E2E=1, and then a missing tool fails them; .ci/setup
// test installs every tool. NOD_BINARY names a built program to drive in place
// of one built here, NOD_ARTIFACTS a directory for the screenshots.
package e2e
