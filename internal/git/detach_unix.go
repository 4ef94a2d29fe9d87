package git

import (
	"os/exec"
	"syscall"
)

// detachFromTerminal puts a helper process into a group of its own, so that
// Ctrl-C does not end it while we still need it to clean up. Only for
// processes that never ask anything on the terminal.
func detachFromTerminal(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
