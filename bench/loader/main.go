// Loader sends the same requests as fast as an API server takes them: the floor for every client.
//
// Everything is made before the clock starts; answers are read and not decoded. It says `ready`,
// waits for a line, works, and prints one line of JSON with what it took.
package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// placeholder stands for an object's name in paths and bodies.
const placeholder = "@NAME@"

type options struct {
	server, ca, token           string
	method, path, content, warm string
	body, prefix, watch         string
	count, concurrency          int
}

// result is what the parent reads.
type result struct {
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu"`
	Peak    int64   `json:"peak"`
}

type loader struct {
	options
	client *http.Client
	secret string
}

func main() {
	var o options
	flag.StringVar(&o.server, "server", "", "URL of the API server")
	flag.StringVar(&o.ca, "ca", "", "file with its certificate authority")
	flag.StringVar(&o.token, "token", "", "file with a token")
	flag.StringVar(&o.method, "method", "GET", "method of each request")
	flag.StringVar(&o.path, "path", "", "path and query of each request; "+placeholder+" is the name")
	flag.StringVar(&o.content, "content-type", "", "content type of the body")
	flag.StringVar(&o.warm, "warm", "", "path that is read to open the connections")
	flag.StringVar(&o.body, "body", "", "body of each request; "+placeholder+" is the name")
	flag.StringVar(&o.prefix, "prefix", "", "what every name begins with")
	flag.StringVar(&o.watch, "watch", "", "follow the path until that type of event came count times")
	flag.IntVar(&o.count, "count", 0, "how many requests or events")
	flag.IntVar(&o.concurrency, "concurrency", 32, "how many at a time")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "loader:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	l, err := newLoader(o)
	if err != nil {
		return err
	}
	if err := l.warmUp(); err != nil {
		return err
	}
	requests, err := l.prepared()
	if err != nil {
		return err
	}
	// The parent looks at its clocks before it lets us go.
	fmt.Println("ready")
	if _, err := fmt.Scanln(); err != nil {
		return err
	}
	if o.watch != "" {
		return l.follow()
	}
	begin, used := time.Now(), cpu()
	if err := l.sendAll(requests); err != nil {
		return err
	}
	return report(time.Since(begin), cpu()-used)
}

func newLoader(o options) (*loader, error) {
	authority, missing := os.ReadFile(o.ca)
	token, err := os.ReadFile(o.token)
	if err := errors.Join(missing, err); err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s holds no certificate", o.ca)
	}
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: roots},
		TLSNextProto:        map[string]func(string, *tls.Conn) http.RoundTripper{}, // HTTP/1.1, as our client
		MaxIdleConnsPerHost: o.concurrency,
		DisableCompression:  true,
	}
	secret := "Bearer " + strings.TrimSpace(string(token))
	return &loader{options: o, client: &http.Client{Transport: transport}, secret: secret}, nil
}

func (l *loader) request(method, path string, body []byte) (*http.Request, error) {
	request, err := http.NewRequestWithContext(context.Background(), method, l.server+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", l.secret)
	if len(body) > 0 {
		request.Header.Set("Content-Type", l.content)
	}
	return request, nil
}

// warmUp opens as many connections as will be used.
func (l *loader) warmUp() error {
	requests := make([]*http.Request, 0, 4*l.concurrency)
	for range cap(requests) {
		request, err := l.request(http.MethodGet, l.warm, nil)
		if err != nil {
			return err
		}
		requests = append(requests, request)
	}
	return l.sendAll(requests)
}

func (l *loader) prepared() ([]*http.Request, error) {
	requests := make([]*http.Request, 0, l.count)
	for index := range l.count {
		name := fmt.Sprintf("%s-%05d", l.prefix, index)
		body := []byte(strings.ReplaceAll(l.body, placeholder, name))
		request, err := l.request(l.method, strings.ReplaceAll(l.path, placeholder, name), body)
		if err != nil {
			return nil, err
		}
		requests = append(requests, request)
	}
	return requests, nil
}

// sendAll sends every request, not more than `concurrency` at a time; any refusal is an error.
func (l *loader) sendAll(requests []*http.Request) error {
	var next atomic.Int64
	var group sync.WaitGroup
	failures := make(chan error, l.concurrency)
	for range l.concurrency {
		group.Go(func() {
			var answer bytes.Buffer
			for {
				index := int(next.Add(1)) - 1
				if index >= len(requests) {
					return
				}
				if err := l.send(requests[index], &answer); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	group.Wait()
	close(failures)
	return <-failures
}

func (l *loader) send(request *http.Request, answer *bytes.Buffer) error {
	response, err := l.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer.Reset()
	if _, err := answer.ReadFrom(response.Body); err != nil {
		return err
	}
	if response.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %s", request.Method, request.URL.Path, response.Status, answer)
	}
	name := request.URL.Path[strings.LastIndexByte(request.URL.Path, '/')+1:]
	if !bytes.Contains(answer.Bytes(), []byte(name)) {
		return fmt.Errorf("%s %s: the answer is about something else", request.Method, request.URL.Path)
	}
	return nil
}

// follow reads a stream until it has brought enough; the clock runs from the first event.
func (l *loader) follow() error {
	request, err := l.request(http.MethodGet, l.path, nil)
	if err != nil {
		return err
	}
	used, seen := cpu(), 0
	response, err := l.client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	wanted := []byte(`{"type":"` + l.watch + `"`)
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(make([]byte, 1<<18), 1<<24)
	var begin time.Time
	for seen < l.count && lines.Scan() {
		if bytes.HasPrefix(lines.Bytes(), wanted) {
			if seen++; seen == 1 {
				begin = time.Now()
			}
		}
	}
	if seen < l.count {
		return fmt.Errorf("%s: the stream ended after %d events: %v", response.Status, seen, lines.Err())
	}
	return report(time.Since(begin), cpu()-used)
}

func report(took time.Duration, used float64) error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	peak, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result{took.Seconds(), used, peak * 1024})
}

// cpu is what this process has used so far, in seconds.
func cpu() float64 {
	var usage syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()).Seconds()
}
