package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// registry is where packages are uploaded: git config release.registry.
func (t *tool) registry() (string, error) {
	url, err := t.git("config", "--default", "http://127.0.0.1:8420", "release.registry")
	return strings.TrimSuffix(url, "/"), err
}

// ask returns what the registry has of a version, and whether it has it.
func (t *tool) ask(p *pack) (content []byte, there bool, err error) {
	status, content, err := t.send(http.MethodGet, p, nil, nil)
	switch {
	case err != nil:
		return nil, false, err
	case status == http.StatusOK:
		return content, true, nil
	case status == http.StatusNotFound:
		return nil, false, nil
	}
	return nil, false, fmt.Errorf("the registry answers %d to a question for %s", status, p.id())
}

// put uploads a version. The fence is the number by which the registry can tell that
// the lease has gone to somebody else since, and the chain says of which lease.
func (t *tool) put(p *pack, content []byte, chain string, fence uint64) error {
	status, said, err := t.send(http.MethodPut, p, content,
		http.Header{"Release-Lease": {chain}, "Release-Fence": {strconv.FormatUint(fence, 10)}})
	if err == nil && status != http.StatusCreated {
		err = fmt.Errorf("the registry answers %d to the upload of %s: %s", status, p.id(), bytes.TrimSpace(said))
	}
	return err
}

func (t *tool) send(method string, p *pack, content []byte, header http.Header) (status int, answer []byte, err error) {
	base, err := t.registry()
	if err != nil {
		return 0, nil, err
	}
	r, err := http.NewRequest(method, base+"/"+p.Name+"/"+p.Version, bytes.NewReader(content))
	if err != nil {
		return 0, nil, err
	}
	r.Header = header
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, answer, err
}
