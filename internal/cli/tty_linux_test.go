package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"gitland/internal/gittest"
)

// terminal opens a new terminal: what is written to the second file can be read
// from the first.
func terminal(t *testing.T) (screen, tty *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { screen.Close() })
	if err := unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tty.Close() })
	return screen, tty
}

// On a real terminal the executables know that they are on one.
func TestExecutableOnATerminal(t *testing.T) {
	t.Parallel()
	environ, dir := scene(t)
	environ = gittest.With(environ, "TERM=xterm")
	screen, tty := terminal(t)
	cmd := gittest.Command(t, environ, dir, "git", "lease", "acquire")
	cmd.Stdout, cmd.Stderr = tty, tty
	if code := gittest.Run(t, cmd).Code; code != 129 {
		t.Errorf("exit code %d, want 129", code)
	}
	tty.Close()
	// The last one that had the terminal open is gone: reading ends with EIO.
	var shown strings.Builder
	if _, err := io.Copy(&shown, screen); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	if !strings.Contains(shown.String(), string(red)+"git lease:"+string(plain)+" the token would be printed") || strings.Contains(shown.String(), "(exit") {
		t.Errorf("the terminal shows %q", shown.String())
	}
	free(t, environ, dir)
}
