package git

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gitland/internal/object"
)

// maxObject bounds an object that is read into memory: events, notes and
// trees, which anyone who may push can make as large as they like.
const maxObject = 64 << 20

// objectReader is one "git cat-file --batch-command", started when first
// needed and asked many times.
type objectReader struct {
	repo *Repo

	mu   sync.Mutex
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	errs *limited
	read cache
}

// A cache keeps small objects that were read: an id is only ever one object, and a
// landing asks for the same few commits and trees in several places, each of which
// would else wait for an answer of another process.
type cache struct {
	objects map[object.OID]object.Object
	size    int
}

// What a cache takes, in bytes: of one object, and of all.
const (
	maxCached  = 64 << 10
	maxCaching = 8 << 20
)

func (c *cache) put(o object.Object) {
	if len(o.Data) > maxCached || c.size+len(o.Data) > maxCaching {
		return
	}
	if c.objects == nil {
		c.objects = map[object.OID]object.Object{}
	}
	c.objects[o.OID] = o
	c.size += len(o.Data)
}

// Object reads what name resolves to: an object id, a full ref, or
// "<commit>:<path>". It returns ErrNotFound when there is no such thing, and
// ErrTooLarge for one of more than 64 MiB. Its data may be another caller's too, and
// is not to be changed.
func (r *Repo) Object(ctx context.Context, name string) (object.Object, error) {
	return r.objects.ask(ctx, "contents", name)
}

// Lookup is Object without the data.
func (r *Repo) Lookup(ctx context.Context, name string) (object.Object, error) {
	o, err := r.objects.ask(ctx, "info", name)
	o.Data = nil // that of one which was read before
	return o, err
}

// Commit reads and parses one commit.
func (r *Repo) Commit(ctx context.Context, oid object.OID) (object.CommitData, error) {
	o, err := r.Object(ctx, string(oid))
	if err != nil {
		return object.CommitData{}, err
	}
	if o.Kind != object.Commit {
		return object.CommitData{}, fmt.Errorf("%s is a %s, not a commit", oid.Short(), o.Kind)
	}
	c, err := object.ReadCommit(o.Data)
	if err != nil {
		return c, fmt.Errorf("%s: %w", oid.Short(), err)
	}
	return c, nil
}

func (o *objectReader) ask(ctx context.Context, verb, name string) (object.Object, error) {
	found, err := o.askAll(ctx, verb, name)
	if err == nil && found[0].OID == "" {
		err = fmt.Errorf("object %q: %w", name, ErrNotFound)
	}
	if err != nil {
		return object.Object{}, err
	}
	return found[0], nil
}

// maxAsked is how many questions are sent before the answers are read: as many as a
// pipe takes at once, so that the two do not wait for each other.
const maxAsked = 64

// askAll asks for several at once, which costs no more time than to ask for one. What
// is not there comes back without an id.
func (o *objectReader) askAll(ctx context.Context, verb string, names ...string) ([]object.Object, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	found := make([]object.Object, len(names))
	var left []int
	for i, name := range names {
		known, cached := o.read.objects[object.OID(name)]
		switch {
		case cached:
			found[i] = known
		case name != "" && !strings.ContainsAny(name, "\n\x00"):
			left = append(left, i)
		}
	}
	if len(left) == 0 {
		return found, ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := o.open(); err != nil {
		return nil, err
	}
	err := o.askEach(ctx, verb, left, names, func(i int, obj object.Object, _ int64) {
		if found[i] = obj; obj.Data != nil {
			o.read.put(obj)
		}
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// askEach sends a question for each of the names that are left, in batches, and hands on
// the answers, in order. The reader is open, and locked.
func (o *objectReader) askEach(ctx context.Context, verb string, left []int, names []string, take func(i int, obj object.Object, size int64)) error {
	for batch := range slices.Chunk(left, maxAsked) {
		if err := o.roundTrip(verb, batch, names, take); err != nil {
			// What it printed can no longer be matched to a question.
			text := strings.TrimSpace(o.errs.String())
			o.stop()
			if old := o.repo.checkVersion(ctx); old != nil {
				return old // --batch-command came with git 2.36
			}
			return fmt.Errorf("read object %s: %w %s", names[batch[0]], err, text)
		}
	}
	return nil
}

// Sizes are those of objects, without reading them; -1 of one that is not here.
func (r *Repo) Sizes(ctx context.Context, ids []object.OID) ([]int64, error) {
	o := r.objects
	o.mu.Lock()
	defer o.mu.Unlock()
	names, left, sizes := make([]string, len(ids)), make([]int, len(ids)), make([]int64, len(ids))
	for i, id := range ids {
		names[i], left[i] = string(id), i
	}
	if err := cmp.Or(ctx.Err(), o.open()); err != nil {
		return nil, err
	}
	err := o.askEach(ctx, "info", left, names, func(i int, obj object.Object, size int64) {
		if sizes[i] = size; obj.OID == "" {
			sizes[i] = -1
		}
	})
	return sizes, err
}

// Small reads those of the objects that have at most max bytes. Others, and those that are
// not here, come back without an id.
func (r *Repo) Small(ctx context.Context, ids []object.OID, max int64) ([]object.Object, error) {
	sizes, err := r.Sizes(ctx, ids)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(ids)) // an empty name is not asked for
	for i, id := range ids {
		if sizes[i] >= 0 && sizes[i] <= max {
			names[i] = string(id)
		}
	}
	return r.objects.askAll(ctx, "contents", names...)
}

// prepare starts the process before it is needed, beside others: nearly every
// command reads an object. An error comes again when the first one is read.
func (o *objectReader) prepare() {
	o.mu.Lock()
	go func() {
		defer o.mu.Unlock()
		o.open()
	}()
}

func (o *objectReader) open() error {
	if o.cmd != nil {
		return nil
	}
	// Not bound to a context: it serves the clean-up after Ctrl-C as well,
	// and ends when its standard input is closed.
	cmd := o.repo.start(context.Background(), command{reading: true, args: []string{"cat-file", "--batch-command"}})
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	o.errs = &limited{max: 64 << 10}
	cmd.Stderr = o.errs
	detachFromTerminal(cmd)
	if err := cmd.Start(); err != nil {
		return &Error{Args: []string{"cat-file"}, ExitCode: -1, Err: err}
	}
	o.cmd, o.in, o.out = cmd, in, bufio.NewReaderSize(out, 64<<10)
	return nil
}

// roundTrip sends the questions of one batch, and hands on the answer of each.
func (o *objectReader) roundTrip(verb string, batch []int, names []string, take func(i int, obj object.Object, size int64)) error {
	var questions strings.Builder
	for _, i := range batch {
		fmt.Fprintf(&questions, "%s %s\n", verb, names[i])
	}
	if _, err := io.WriteString(o.in, questions.String()); err != nil {
		return err
	}
	for _, i := range batch {
		obj, size, err := o.answer(verb)
		if err != nil {
			return err
		}
		take(i, obj, size)
	}
	return nil
}

// answer reads one answer. It is without an id where there is no such object.
func (o *objectReader) answer(verb string) (obj object.Object, size int64, err error) {
	line, err := o.out.ReadString('\n')
	if err != nil {
		return obj, 0, err
	}
	line = strings.TrimSuffix(line, "\n")
	fields := strings.Fields(line)
	if len(fields) != 3 || strings.HasSuffix(line, " missing") || strings.HasSuffix(line, " ambiguous") {
		return obj, 0, nil
	}
	if size, err = strconv.ParseInt(fields[2], 10, 64); err != nil {
		return obj, 0, fmt.Errorf("unexpected answer %q", line)
	}
	oid, err := object.ParseOID(fields[0])
	if err != nil {
		return obj, 0, err
	}
	obj.Kind = object.Kind(fields[1])
	if verb == "info" {
		obj.OID = oid
		return obj, size, nil
	}
	if size > maxObject {
		return obj, size, fmt.Errorf("%d bytes: %w", size, ErrTooLarge)
	}
	obj.Data = make([]byte, size+1) // and the line break that follows
	if _, err := io.ReadFull(o.out, obj.Data); err != nil {
		return obj, size, err
	}
	obj.OID, obj.Data = oid, obj.Data[:size:size]
	return obj, size, nil
}

// stop ends the process. It only reads, so that there is nothing to clean up,
// and nobody has to wait until it is gone.
func (o *objectReader) stop() {
	o.in.Close()
	o.cmd.Process.Kill()
	go o.cmd.Wait()
	o.cmd = nil
}

func (o *objectReader) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.cmd != nil {
		o.stop()
	}
}
