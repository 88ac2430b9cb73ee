package forwarding

// helper is what the test binary does when it is started as another process.
func helper(string) int { return 2 }
