package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gitland/internal/object"
)

// stream runs a command and reads its standard output as it comes. An error of
// read ends the command.
func (r *Repo) stream(ctx context.Context, c command, read func(*bufio.Reader) error) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	c.reading = true
	cmd := r.start(running, c)
	cmd.Stdin = bytes.NewReader(c.stdin)
	stderr := limited{max: 64 << 10}
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return &Error{Args: c.args, ExitCode: -1, Err: err}
	}
	readErr := read(bufio.NewReaderSize(out, 256<<10))
	if readErr != nil && !errors.Is(readErr, io.ErrUnexpectedEOF) {
		stop()
		cmd.Wait()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return readErr
	}
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return &Error{Args: c.args, ExitCode: exitCode(cmd), Stderr: stderr.String(), Err: err}
	}
	return readErr
}

// Contents reads many objects in one process and calls yield for each, in
// order. The error that yield is given is ErrNotFound for one that is not here,
// or says that it is too large to be read; the others still come.
func (r *Repo) Contents(ctx context.Context, ids []object.OID, yield func(i int, o object.Object, err error) error) error {
	return r.ContentsIn(ctx, ids, func(size int) []byte { return make([]byte, size) }, yield)
}

// ContentsIn is Contents for who has room for the data: room is asked for it,
// just before the object is yielded, in bytes.
func (r *Repo) ContentsIn(ctx context.Context, ids []object.OID, room func(size int) []byte, yield func(i int, o object.Object, err error) error) error {
	if len(ids) == 0 {
		return nil
	}
	var in bytes.Buffer
	in.Grow(len(ids) * (len(ids[0]) + 1))
	for _, id := range ids {
		in.WriteString(string(id))
		in.WriteByte('\n')
	}
	return r.stream(ctx, command{stdin: in.Bytes(), args: []string{"cat-file", "--batch", "--buffer"}}, func(out *bufio.Reader) error {
		for i, id := range ids {
			o, err := readObject(out, id, room)
			if err != nil && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrTooLarge) {
				return err
			}
			if err := yield(i, o, err); err != nil {
				return err
			}
		}
		return nil
	})
}

// ErrTooLarge says that an object is larger than what is read into memory.
var ErrTooLarge = fmt.Errorf("more than the %d bytes that are read", maxObject)

// readObject reads one answer of "git cat-file --batch".
func readObject(out *bufio.Reader, id object.OID, room func(size int) []byte) (object.Object, error) {
	o := object.Object{OID: id}
	head, err := out.ReadSlice('\n')
	if err != nil {
		return o, io.ErrUnexpectedEOF
	}
	line := string(head)
	_, what, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	kind, digits, found := strings.Cut(what, " ")
	if !found { // "<oid> missing"
		return o, fmt.Errorf("object %s: %w", id, ErrNotFound)
	}
	size, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return o, fmt.Errorf("cat-file: unexpected answer %q", line)
	}
	o.Kind = object.Kind(kind)
	if size > maxObject {
		if _, err := io.CopyN(io.Discard, out, size+1); err != nil {
			return o, io.ErrUnexpectedEOF
		}
		return o, fmt.Errorf("object %s: %w", id, ErrTooLarge)
	}
	o.Data = room(int(size) + 1) // and the line break that follows
	if _, err := io.ReadFull(out, o.Data); err != nil {
		return o, io.ErrUnexpectedEOF
	}
	o.Data = o.Data[:size]
	return o, nil
}

// A HistoryEntry is a commit with what its place in history needs.
type HistoryEntry struct {
	OID     object.OID
	Tree    object.OID
	Parents []object.OID
}

// History lists the commits that are reachable from one of tips and from none
// of excluded, children before their parents, and calls yield for each. Ids of
// objects that are not here, or are no commits, are passed over.
func (r *Repo) History(ctx context.Context, tips, excluded []object.OID, yield func(HistoryEntry) error) error {
	if len(tips) == 0 {
		return nil
	}
	var in bytes.Buffer
	in.Grow((len(tips) + len(excluded)) * (len(tips[0]) + 2))
	for _, id := range tips {
		in.WriteString(string(id))
		in.WriteByte('\n')
	}
	for _, id := range excluded {
		in.WriteString("^" + string(id) + "\n")
	}
	return r.stream(ctx, command{stdin: in.Bytes(), args: []string{"rev-list", "--topo-order", "--ignore-missing",
		"--no-commit-header", "--format=%H %T %P", "--stdin"}}, func(out *bufio.Reader) error {
		for {
			line, err := out.ReadString('\n')
			if err == io.EOF && line == "" {
				return nil
			}
			if err != nil {
				return io.ErrUnexpectedEOF
			}
			fields := strings.Fields(line)
			if len(fields) < 2 {
				return fmt.Errorf("rev-list: unexpected line %q", line)
			}
			e := HistoryEntry{OID: object.OID(fields[0]), Tree: object.OID(fields[1])}
			e.Parents = make([]object.OID, len(fields)-2)
			for i, f := range fields[2:] {
				e.Parents[i] = object.OID(f)
			}
			if err := yield(e); err != nil {
				return err
			}
		}
	})
}

// A TreeFile is a file somewhere below a tree.
type TreeFile struct {
	Path string
	OID  object.OID
}

// TreeFiles lists all files below a tree, or that of a commit, in git's order.
func (r *Repo) TreeFiles(ctx context.Context, tree object.OID) ([]TreeFile, error) {
	var files []TreeFile
	err := r.stream(ctx, command{args: []string{"ls-tree", "-r", "-z", "--full-tree", string(tree)}}, func(out *bufio.Reader) error {
		for {
			line, err := out.ReadString(0)
			if err == io.EOF && line == "" {
				return nil
			}
			if err != nil {
				return io.ErrUnexpectedEOF
			}
			// "<mode> <kind> <oid>\t<path>"
			head, path, _ := strings.Cut(strings.TrimSuffix(line, "\x00"), "\t")
			fields := strings.Fields(head)
			if len(fields) != 3 {
				return fmt.Errorf("ls-tree: unexpected line %q", line)
			}
			if fields[1] == string(object.Blob) {
				files = append(files, TreeFile{Path: path, OID: object.OID(fields[2])})
			}
		}
	})
	return files, err
}

// IsShallow reports whether the repository has only a part of its history, so
// that a commit which is not here may well be one of the branch.
func (r *Repo) IsShallow() bool {
	info, err := os.Stat(filepath.Join(r.CommonDir, "shallow"))
	return err == nil && info.Size() > 0
}
