package main

import (
	"os"
	"strings"
	"testing"

	"gitland/internal/gittest"
)

func TestRunCleansUpHoweverItEnds(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(gittest.T){
		"returns": func(gittest.T) {},
		"skips":   func(t gittest.T) { t.Skipf("no %s", "sshd") },
		"fails":   func(t gittest.T) { t.Fatalf("exit %d", 3) },
	} {
		var dir string
		skipped, err := run(func(t gittest.T) {
			dir = t.TempDir()
			end(t)
			if name != "returns" {
				panic("went on")
			}
		})
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s: %s was left behind", name, dir)
		}
		if (skipped == "no sshd") != (name == "skips") {
			t.Errorf("%s: skipped %q", name, skipped)
		}
		if (err != nil && strings.Contains(err.Error(), "exit 3")) != (name == "fails") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestQuartiles(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		values []float64
		want   [3]float64
	}{
		{[]float64{7}, [3]float64{7, 7, 7}},
		{[]float64{3, 1}, [3]float64{1.5, 2, 2.5}},
		{[]float64{5, 1, 3, 2, 4}, [3]float64{2, 3, 4}},
	} {
		if got := quartiles(test.values); got != test.want {
			t.Errorf("quartiles(%v) = %v, want %v", test.values, got, test.want)
		}
	}
}
