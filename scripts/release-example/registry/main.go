// The command registry is a double of a package registry: it keeps in memory what is
// uploaded, once for each version, and can be told to fail.
//
//	GET  /NAME/VERSION     what was uploaded, or 404
//	PUT  /NAME/VERSION     201; 409 where the version is used; 412 where the header
//	                       Release-Fence is below one that was seen of the same
//	                       Release-Lease
//	GET  /                 what was uploaded, in that order, a line each
//	POST /fail?upload=N    the Nth upload from now on is refused with 503; with &how=lost
//	                       it is kept, and the answer is lost
package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
)

type registry struct {
	mu      sync.Mutex
	content map[string][]byte // by NAME/VERSION
	order   []string
	fences  map[string]uint64 // the highest seen, by lease
	failIn  int               // the upload that fails, counted from now; 0 for none
	lost    bool              // it is kept all the same
}

func main() {
	addr := flag.String("addr", "127.0.0.1:8420", "where to listen; port 0 is any that is free")
	flag.Parse()
	listener, err := net.Listen("tcp", *addr)
	if err == nil {
		fmt.Printf("http://%s\n", listener.Addr())
		r := &registry{content: map[string][]byte{}, fences: map[string]uint64{}}
		err = http.Serve(listener, r)
	}
	fmt.Fprintf(os.Stderr, "registry: %v\n", err)
	os.Exit(1)
}

func (r *registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return // of an upload that broke off nothing is kept
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	name := strings.TrimPrefix(req.URL.Path, "/")
	content, there := r.content[name]
	switch {
	case req.Method == http.MethodPost && name == "fail":
		r.failIn, _ = strconv.Atoi(req.FormValue("upload"))
		r.lost = req.FormValue("how") == "lost"
	case req.Method == http.MethodGet && name == "":
		for _, name := range r.order {
			fmt.Fprintln(w, name)
		}
	case req.Method == http.MethodGet && there:
		w.Write(content)
	case req.Method == http.MethodGet:
		http.NotFound(w, req)
	case req.Method == http.MethodPut:
		r.upload(w, name, body, req.Header.Get("Release-Lease"), req.Header.Get("Release-Fence"))
	default:
		http.Error(w, "GET, PUT or POST /fail", http.StatusMethodNotAllowed)
	}
}

func (r *registry) upload(w http.ResponseWriter, name string, body []byte, lease, fence string) {
	number, err := strconv.ParseUint(fence, 10, 64)
	_, used := r.content[name]
	fails := r.failIn == 1
	r.failIn = max(0, r.failIn-1)
	switch {
	case fails && !r.lost:
		http.Error(w, "told to fail", http.StatusServiceUnavailable)
		return
	case err != nil || lease == "":
		http.Error(w, "an upload has a Release-Lease and its Release-Fence, a number", http.StatusBadRequest)
		return
	case number < r.fences[lease]:
		http.Error(w, fmt.Sprintf("the fence %d is below %d: the lease is somebody else's by now", number, r.fences[lease]), http.StatusPreconditionFailed)
		return
	case used:
		http.Error(w, name+" is used", http.StatusConflict)
		return
	}
	r.content[name], r.fences[lease] = body, number
	r.order = append(r.order, name)
	if fails {
		panic(http.ErrAbortHandler) // the connection ends without an answer
	}
	w.WriteHeader(http.StatusCreated)
}
