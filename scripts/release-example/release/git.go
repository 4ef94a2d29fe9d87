package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// output runs a program in a directory and returns what it prints, without the newline
// at the end. What it says of an error goes where ours goes.
func output(dir, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSuffix(string(out), "\n"), err
}

func (t *tool) git(args ...string) (string, error) { return output(t.top, "git", args...) }

// become replaces this process by another program, which so has its signals, its
// terminal and its exit code.
func (t *tool) become(argv []string) error {
	path, err := exec.LookPath(argv[0])
	if err == nil {
		err = os.Chdir(t.top)
	}
	if err == nil {
		err = syscall.Exec(path, argv, os.Environ())
	}
	return fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
}

// self is how this program is called by others.
func self() string {
	if !strings.Contains(os.Args[0], "/") {
		return os.Args[0] // in PATH, maybe elsewhere in another clone
	}
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

// at is the option that names the remote, if one was given.
func (t *tool) at() []string {
	if t.remote == "" {
		return nil
	}
	return []string{"--remote", t.remote}
}

// A tree is the files below packages/, by their paths from the top.
type tree map[string][]byte

// committed is the tree of a commit.
func (t *tool) committed(commit string) (tree, error) {
	archive, err := t.archive(commit, "packages")
	if err != nil {
		return nil, err
	}
	files := tree{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
}

// archive is a directory of a commit as a tar file, the same each time.
func (t *tool) archive(commit, dir string) ([]byte, error) {
	out, err := t.git("archive", "--format=tar", commit, "--", dir)
	return []byte(out), err
}
