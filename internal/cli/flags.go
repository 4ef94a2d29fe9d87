package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/urfave/cli/v2"

	"gitland/internal/fault"
	"gitland/internal/lease"
	"gitland/internal/ledger"
	"gitland/internal/object"
)

// Options, as help shows them: a usage begins with the name of the value.

func boolean(name, usage string) cli.Flag { return &cli.BoolFlag{Name: name, Usage: usage} }

func text(name, usage string, aliases ...string) cli.Flag {
	return &cli.StringFlag{Name: name, Usage: usage, Aliases: aliases}
}

// texts is an option that can be given several times.
func texts(name, usage string, aliases ...string) cli.Flag {
	return &cli.StringSliceFlag{Name: name, Usage: usage, Aliases: aliases, KeepSpace: true}
}

// beside is an option that help shows in the line of another one, whose usage names it.
func beside(f cli.Flag) cli.Flag {
	switch f := f.(type) {
	case *cli.BoolFlag:
		f.Hidden = true
	case *cli.StringFlag:
		f.Hidden = true
	case *cli.StringSliceFlag:
		f.Hidden = true
	case *cli.GenericFlag:
		f.Hidden = true
	}
	return f
}

// hidden reports whether an option was made with beside.
func hidden(f cli.Flag) bool {
	shown, ok := f.(cli.VisibleFlag)
	return ok && !shown.IsVisible()
}

func remoteFlag() cli.Flag {
	return text("remote", "`REMOTE` whose refs decide; . for this repository")
}

func jsonFlag() cli.Flag { return boolean("json", "print one JSON object, on failure too") }

func purposeFlag() cli.Flag {
	return text("message", "`PURPOSE` that those who have to wait will see", "m")
}

func waitFlags() []cli.Flag {
	return []cli.Flag{
		boolean("wait", "wait while another operation holds it"),
		duration("timeout", "`DURATION` to wait at most, such as 90s or 10m"),
	}
}

// mayBeEmpty reports whether an empty value of an option can be meant; that of
// others is an unset variable in somebody's script.
func mayBeEmpty(f cli.Flag) bool {
	return slices.Contains([]string{"message", "reason"}, f.Names()[0])
}

// A parsed is the value of an option that is more than text.
type parsed[T any] struct {
	parse func(string) (T, error)
	value T
	given bool
}

func (p *parsed[T]) Set(text string) (err error) {
	p.value, err = p.parse(text)
	p.given = true
	return err
}

func (p *parsed[T]) String() string { return "" }

func generic[T any](name, usage string, parse func(string) (T, error), aliases ...string) cli.Flag {
	return &cli.GenericFlag{Name: name, Usage: usage, Aliases: aliases, Value: &parsed[T]{parse: parse}}
}

// value is what an option made with generic was given, and whether it was.
func value[T any](c *call, name string) (T, bool) {
	p, ok := c.opts.Generic(name).(*parsed[T])
	if !ok {
		var zero T
		return zero, false
	}
	return p.value, p.given
}

func duration(name, usage string) cli.Flag {
	return generic(name, usage, func(text string) (time.Duration, error) {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return 0, errors.New("not a duration such as 90s or 10m")
		}
		return d, nil
	})
}

func number(name, usage string, least, most int) cli.Flag {
	return generic(name, usage, func(text string) (int, error) {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("not a number from %d to %d", least, most)
		}
		return n, nil
	})
}

func choice(name, usage string, words ...string) cli.Flag {
	return generic(name, usage, func(text string) (string, error) {
		if !slices.Contains(words, text) {
			return "", fmt.Errorf("not one of %s", strings.Join(words, ", "))
		}
		return text, nil
	})
}

func operationFlag(usage string) cli.Flag { return text("operation", usage) }

// holder is the operation that --operation names; the zero id when there is none.
// People give other words that the tools print: those are told what they gave.
func (c *call) holder(ctx context.Context, l *ledger.Ledger, w ledger.Want) (ulid.ULID, error) {
	text := c.opts.String("operation")
	if text == "" {
		return ulid.Zero, nil
	}
	if id, err := ulid.ParseStrict(text); err == nil {
		return id, nil
	}
	show := l.Command("git", "lease", "show", w.Name)
	if v, err := l.Fetch(ctx, w); err == nil {
		if op, what := lease.Named(ctx, l, v, text); what != "" {
			return ulid.Zero, fault.New(fault.Usage, "%q is %s, of operation %s, and no operation", text, what, op).
				WithHint("%s   (it names the operation that holds the lease)", show)
		}
	}
	return ulid.Zero, fault.New(fault.Usage, "%q is not the full id of an operation, which has 26 letters and digits", text).
		WithHint("%s   (it names the operation that holds the lease)", show)
}

func oidFlag(name, usage string) cli.Flag {
	return generic(name, usage, func(text string) (object.OID, error) {
		oid, err := object.ParseOID(text)
		if err != nil {
			return "", errors.New("not a full object id")
		}
		return oid, nil
	})
}

func branchFlag(name, usage string) cli.Flag { return generic(name, usage, parseBranch) }

// parseBranch takes a branch by its name or its full ref.
func parseBranch(text string) (object.Ref, error) {
	ref, err := object.ParseRef("refs/heads/" + strings.TrimPrefix(text, "refs/heads/"))
	if err != nil {
		return "", errors.New("not the name of a branch")
	}
	return ref, nil
}
