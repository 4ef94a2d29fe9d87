package gittest

import (
	"fmt"
	"os"
	"os/exec"
)

// Main runs a package's tests with our executables built, and those of more packages:
// *bin is the directory that they are in. It returns the exit code, for TestMain.
func Main(m interface{ Run() int }, bin *string, more ...string) int {
	dir, err := os.MkdirTemp("", "gitland-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", append([]string{"build", "-tags", "urfave_cli_no_docs", "-o", dir + "/",
		"gitland/cmd/git-land", "gitland/cmd/git-lease"}, more...)...)
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		return 1
	}
	*bin = dir
	return m.Run()
}
