// Command pg_isready stands in for a PostgreSQL server and its probe, in one static file: it keeps a count on its volume,
// where the server would keep its data, and says over HTTP what it was told.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

const address = ":5432"

func main() {
	if len(os.Args) > 1 && os.Args[1] == "postgres" {
		serve()
	}
	connection, err := net.DialTimeout("tcp", "127.0.0.1"+address, time.Second)
	exitOn(err)
	exitOn(connection.Close())
}

func serve() {
	folder := os.Getenv("PGDATA")
	exitOn(os.MkdirAll(folder, 0o700))
	file := filepath.Join(folder, "starts")
	content, _ := os.ReadFile(file)
	starts, _ := strconv.Atoi(string(content))
	exitOn(os.WriteFile(file, []byte(strconv.Itoa(starts+1)), 0o600))
	http.HandleFunc("/", func(answer http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(answer, "%s of %s, start %d", os.Getenv("POSTGRES_DB"), os.Getenv("POSTGRES_USER"), starts+1)
	})
	exitOn(http.ListenAndServe(address, nil))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
