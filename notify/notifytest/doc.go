// Package notifytest is a desktop for tests: a real session bus of their own, a
// real X server without a screen, real notification servers whose buttons are
// really clicked, and a notification server in Go for whatever needs no eyes.
// Nothing of the machine's own session is touched, and everything a test starts
// ends with it.
//
// Parts that need tools which may not be installed call Need: with NOD_E2E=1 in
// the environment a missing tool fails the test, otherwise it skips it. Pictures
// go to the directory in NOD_ARTIFACTS, else to the test's own temporary one.
package notifytest
