// The library from Go: goroutines that move between threads, callbacks into Go, finalizers. Usage: client TESTS_DATA
package main

// #include <inlay/inlay.h>
import "C"

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const generatedTokens = 16

type golden struct {
	Prompt []int32 `json:"prompt_ids"`
	Greedy []int32 `json:"greedy_ids"`
}

var (
	model    string
	expected golden
)

func require(condition bool, format string, values ...any) {
	if !condition {
		_, _, line, _ := runtime.Caller(1)
		fmt.Fprintf(os.Stderr, "main.go:%d: %s\n", line, fmt.Sprintf(format, values...))
		os.Exit(1)
	}
}

func must[T any](value T, err error) T {
	require(err == nil, "%v", err)
	return value
}

func statusOf(err error) int32 {
	var failed *Error
	if errors.As(err, &failed) {
		return failed.Status
	}
	return 0
}

func checkVersion() {
	header := fmt.Sprintf("%d.%d.%d", C.INLAY_VERSION_MAJOR, C.INLAY_VERSION_MINOR, C.INLAY_VERSION_PATCH)
	require(Version() == header, "the library is %s, the header %s", Version(), header)
	require(CheckABI(C.INLAY_VERSION_MAJOR, C.INLAY_VERSION_MINOR) == nil, "the library does not serve its own header")
	err := CheckABI(C.INLAY_VERSION_MAJOR+1, 0)
	require(statusOf(err) == C.INLAY_E_UNSUPPORTED, "a later major version gives %v", err)
}

func checkMissingFile() {
	_, err := Open("/no/such/file.gguf", 1)
	require(statusOf(err) == C.INLAY_E_IO, "a missing file gives %v", err)
	require(strings.HasPrefix(err.Error(), "INLAY_E_IO: ") && strings.Contains(err.Error(), "/no/such/file.gguf"),
		"the sentence does not name the file: %v", err)
}

func checkText(engine *Engine) {
	require(must(engine.Vocabulary()) == 384, "the vocabulary has another size")
	const text = "Grüße, 世界: 12 apples"
	tokens := must(engine.Tokenize(text, 0))
	require(len(tokens) > 0, "no tokens")
	back := must(engine.Detokenize(tokens))
	require(back == text, "%q came back as %q", text, back)
}

func newPrompted(cache *Cache, maxNewTokens uint64) *Session {
	session := must(cache.NewSession(maxNewTokens))
	require(session.Append(expected.Prompt) == nil, "append failed")
	return session
}

func checkNext(cache *Cache) {
	session := newPrompted(cache, generatedTokens)
	var tokens []int32
	for {
		chunk, status, err := session.Next()
		require(err == nil, "%v", err)
		tokens = append(tokens, chunk.Tokens...)
		if status == C.INLAY_END {
			require(chunk.Finish == C.INLAY_FINISH_LENGTH, "finish reason %d", chunk.Finish)
			break
		}
	}
	require(reflect.DeepEqual(tokens, expected.Greedy), "next gave %v, not %v", tokens, expected.Greedy)
	stats := must(session.Stats())
	require(int(stats.n_prompt_tokens) == len(expected.Prompt) && stats.n_generated_tokens == generatedTokens &&
		stats.prompt_ns > 0, "stats: %+v", stats)
	held := must(cache.Stats())
	require(held.n_used_blocks > 0 && held.used_bytes == held.n_used_blocks*held.block_bytes, "stats: %+v", held)
}

func run(session *Session) ([]int32, string, int32, error) {
	var tokens []int32
	var text strings.Builder
	finish, err := session.Run(func(chunk Chunk) bool {
		runtime.GC() // nothing that the call uses may move or go
		tokens = append(tokens, chunk.Tokens...)
		text.WriteString(chunk.Text)
		return true
	})
	return tokens, text.String(), finish, err
}

func checkCallback(engine *Engine, cache *Cache) {
	tokens, text, finish, err := run(newPrompted(cache, generatedTokens))
	require(err == nil && finish == C.INLAY_FINISH_LENGTH, "finish reason %d, %v", finish, err)
	require(reflect.DeepEqual(tokens, expected.Greedy), "run gave %v, not %v", tokens, expected.Greedy)
	// Random tokens make bytes that are no UTF-8; the text has U+FFFD for them.
	whole := strings.ToValidUTF8(must(engine.Detokenize(tokens)), "")
	require(strings.ReplaceAll(text, "\uFFFD", "") == whole, "text %q, not %q", text, whole)

	n := 0
	_, err = newPrompted(cache, generatedTokens).Run(func(Chunk) bool { n++; return n < 3 })
	require(n == 3 && statusOf(err) == C.INLAY_E_CANCELLED, "stopped by its callback after %d chunks: %v", n, err)

	session := newPrompted(cache, generatedTokens)
	panicked := func() (panicked any) {
		defer func() { panicked = recover() }()
		session.Run(func(Chunk) bool { panic("mine") })
		return nil
	}()
	require(panicked == "mine", "a panic in a callback came out as %v", panicked)
	chunk, _, err := session.Next()
	require(err == nil && reflect.DeepEqual(chunk.Tokens, expected.Greedy[1:2]), "after a panic: %v %v", chunk, err)
}

// Another goroutine, on another thread: it is told that the session is busy, and then cancels.
func checkCancel(cache *Cache) {
	session := newPrompted(cache, 0)
	started, cancelled := make(chan bool), make(chan error)
	go func() {
		runtime.LockOSThread()
		<-started
		err := session.Append(expected.Prompt)
		session.Cancel()
		cancelled <- err
	}()
	n := 0
	finish, err := session.Run(func(Chunk) bool {
		if n++; n == 1 {
			started <- true
			busy := <-cancelled
			require(statusOf(busy) == C.INLAY_E_BUSY, "a call during a call gives %v", busy)
		}
		return true
	})
	require(err == nil && finish == C.INLAY_FINISH_CANCELLED && n == 1, "%d chunks, reason %d, %v", n, finish, err)
	chunk, _, err := session.Next()
	require(err == nil && reflect.DeepEqual(chunk.Tokens, expected.Greedy[1:2]), "after a cancel: %v %v", chunk, err)
}

func checkGoroutines(cache *Cache) {
	var all sync.WaitGroup
	for i := 0; i < 8; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			tokens, _, _, err := run(newPrompted(cache, generatedTokens))
			require(err == nil && reflect.DeepEqual(tokens, expected.Greedy), "beside others: %v %v", tokens, err)
		}()
	}
	all.Wait()
}

// Parents first: children hold them.
func checkRelease() {
	engine := must(Open(model, 2))
	cache := must(engine.NewCache())
	session := newPrompted(cache, generatedTokens)
	engine.Close()
	cache.Close()
	tokens, _, _, err := run(session)
	require(err == nil && reflect.DeepEqual(tokens, expected.Greedy), "without its parents: %v %v", tokens, err)
	session.Close()
}

// Handles that Go forgot go in whatever order the collector finds them, on its own goroutine.
func checkFinalizers() {
	before := atomic.LoadInt32(&finalized)
	const rounds = 3
	func() {
		for i := 0; i < rounds; i++ {
			engine := must(Open(model, 2))
			cache := must(engine.NewCache())
			newPrompted(cache, generatedTokens).Next()
		}
	}()
	for i := 0; atomic.LoadInt32(&finalized) < before+3*rounds; i++ {
		require(i < 500, "%d of %d finalizers ran", atomic.LoadInt32(&finalized)-before, 3*rounds)
		runtime.GC()
		time.Sleep(10 * time.Millisecond)
	}
}

func main() {
	require(len(os.Args) == 2, "usage: client TESTS_DATA")
	folder := filepath.Join(os.Args[1], "tiny", "llama")
	model = filepath.Join(folder, "llama.f16.gguf")
	require(json.Unmarshal(must(os.ReadFile(filepath.Join(folder, "golden.json"))), &expected) == nil, "golden.json")
	expected.Greedy = expected.Greedy[:generatedTokens]

	checkVersion()
	checkMissingFile()
	engine := must(Open(model, 2))
	cache := must(engine.NewCache())
	checkText(engine)
	checkNext(cache)
	checkCallback(engine, cache)
	checkCancel(cache)
	checkGoroutines(cache)
	checkRelease()
	checkFinalizers()
	runtime.KeepAlive(engine)
}
