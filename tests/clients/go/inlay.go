// A binding as a Go program would write it for itself: what the checks in main.go call, and no more.
package main

/*
#include <inlay/inlay.h>
#include <stdlib.h>

int32_t goOnChunk(void* user, inlay_chunk* chunk);

// An exported Go function has no const parameters, so the pointer to it needs a cast.
static inlay_chunk_callback on_chunk(void) { return (inlay_chunk_callback)goOnChunk; }
*/
import "C"

import (
	"fmt"
	"runtime"
	"runtime/cgo"
	"sync/atomic"
	"unsafe"
)

// Handles whose finalizer has run.
var finalized int32

type Error struct {
	Status   int32
	Sentence string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %s", C.GoString(C.inlay_status_name(C.int32_t(e.Status))), e.Sentence)
}

// What a call returned as a Go error, nil for outcomes. The object is the caller's: it is read and released here.
func failure(status C.int32_t, err *C.inlay_error) error {
	if status >= 0 {
		return nil
	}
	defer C.inlay_error_release(err)
	return &Error{int32(C.inlay_error_code(err)), C.GoString(C.inlay_error_message(err))}
}

func Version() string { return C.GoString(C.inlay_version()) }

func CheckABI(major, minor uint32) error {
	var err *C.inlay_error
	return failure(C.inlay_check_abi(C.uint32_t(major), C.uint32_t(minor), &err), err)
}

// The C pointer and length of a text, for the length of one call.
func withText[T any](text string, call func(*C.char, C.size_t) T) T {
	copied := C.CString(text)
	defer C.free(unsafe.Pointer(copied))
	return call(copied, C.size_t(len(text)))
}

// ---- engine

type Engine struct{ handle *C.inlay_engine }

func Open(path string, threads uint32) (*Engine, error) {
	options := C.inlay_engine_options{n_threads: C.uint32_t(threads), compute: C.INLAY_COMPUTE_F32}
	options.struct_size = C.uint32_t(unsafe.Sizeof(options))
	engine := &Engine{}
	var err *C.inlay_error
	status := withText(path, func(text *C.char, size C.size_t) C.int32_t {
		return C.inlay_engine_open(text, size, &options, &engine.handle, &err)
	})
	if status < 0 {
		return nil, failure(status, err)
	}
	runtime.SetFinalizer(engine, func(e *Engine) { e.Close(); atomic.AddInt32(&finalized, 1) })
	return engine, nil
}

func (e *Engine) Close() {
	C.inlay_engine_release(e.handle)
	e.handle = nil
}

func (e *Engine) Vocabulary() (int, error) {
	info := C.inlay_engine_info{}
	info.struct_size = C.uint32_t(unsafe.Sizeof(info))
	var err *C.inlay_error
	status := C.inlay_engine_get_info(e.handle, &info, &err)
	runtime.KeepAlive(e)
	return int(info.n_vocabulary), failure(status, err)
}

func (e *Engine) Tokenize(text string, flags uint32) ([]int32, error) {
	var err *C.inlay_error
	var tokens []int32
	status := withText(text, func(text *C.char, size C.size_t) C.int32_t {
		var needed C.size_t
		status := C.inlay_tokenize(e.handle, text, size, C.uint32_t(flags), nil, 0, &needed, &err)
		if status < 0 || needed == 0 {
			return status
		}
		tokens = make([]int32, needed)
		return C.inlay_tokenize(e.handle, text, size, C.uint32_t(flags), (*C.int32_t)(&tokens[0]), needed, &needed, &err)
	})
	runtime.KeepAlive(e)
	return tokens, failure(status, err)
}

func (e *Engine) Detokenize(tokens []int32) (string, error) {
	var err *C.inlay_error
	var needed C.size_t
	first := (*C.int32_t)(&tokens[0])
	status := C.inlay_detokenize(e.handle, first, C.size_t(len(tokens)), 0, nil, 0, &needed, &err)
	if status < 0 || needed == 0 {
		return "", failure(status, err)
	}
	text := make([]byte, needed)
	status = C.inlay_detokenize(e.handle, first, C.size_t(len(tokens)), 0, (*C.char)(unsafe.Pointer(&text[0])), needed,
		&needed, &err)
	runtime.KeepAlive(e)
	return string(text), failure(status, err)
}

// ---- cache

type Cache struct{ handle *C.inlay_cache }

func (e *Engine) NewCache() (*Cache, error) {
	options := C.inlay_cache_options{key_type: C.INLAY_KV_F32, value_type: C.INLAY_KV_F32}
	options.struct_size = C.uint32_t(unsafe.Sizeof(options))
	cache := &Cache{}
	var err *C.inlay_error
	status := C.inlay_cache_create(e.handle, &options, &cache.handle, &err)
	runtime.KeepAlive(e)
	if status < 0 {
		return nil, failure(status, err)
	}
	runtime.SetFinalizer(cache, func(c *Cache) { c.Close(); atomic.AddInt32(&finalized, 1) })
	return cache, nil
}

func (c *Cache) Close() {
	C.inlay_cache_release(c.handle)
	c.handle = nil
}

func (c *Cache) Stats() (C.inlay_cache_stats, error) {
	stats := C.inlay_cache_stats{}
	stats.struct_size = C.uint32_t(unsafe.Sizeof(stats))
	var err *C.inlay_error
	status := C.inlay_cache_get_stats(c.handle, &stats, &err)
	runtime.KeepAlive(c)
	return stats, failure(status, err)
}

// ---- session

type Session struct{ handle *C.inlay_session }

// A copy: what the library lends ends with the next call.
type Chunk struct {
	Tokens []int32
	Text   string
	Finish int32
}

func copyChunk(chunk *C.inlay_chunk) Chunk {
	copied := Chunk{Finish: int32(chunk.finish_reason), Text: C.GoStringN(chunk.text, C.int(chunk.text_size))}
	copied.Tokens = append(copied.Tokens, unsafe.Slice((*int32)(chunk.tokens), int(chunk.n_tokens))...)
	return copied
}

func (c *Cache) NewSession(maxNewTokens uint64) (*Session, error) {
	session := &Session{}
	var err *C.inlay_error
	status := C.inlay_session_create(c.handle, nil, &session.handle, &err)
	runtime.KeepAlive(c)
	if status < 0 {
		return nil, failure(status, err)
	}
	runtime.SetFinalizer(session, func(s *Session) { s.Close(); atomic.AddInt32(&finalized, 1) })
	options := C.inlay_generation_options{
		flags: C.INLAY_GENERATION_IGNORE_END, max_new_tokens: C.uint64_t(maxNewTokens)}
	options.struct_size = C.uint32_t(unsafe.Sizeof(options))
	status = C.inlay_session_set_generation(session.handle, &options, &err)
	return session, failure(status, err)
}

func (s *Session) Close() {
	C.inlay_session_release(s.handle)
	s.handle = nil
}

func (s *Session) Append(tokens []int32) error {
	var err *C.inlay_error
	status := C.inlay_session_append_tokens(s.handle, (*C.int32_t)(&tokens[0]), C.size_t(len(tokens)), &err)
	runtime.KeepAlive(s)
	return failure(status, err)
}

// One step; the status is an INLAY_* outcome.
func (s *Session) Next() (Chunk, int32, error) {
	chunk := C.inlay_chunk{}
	chunk.struct_size = C.uint32_t(unsafe.Sizeof(chunk))
	var err *C.inlay_error
	status := C.inlay_session_next(s.handle, &chunk, &err)
	copied := copyChunk(&chunk)
	runtime.KeepAlive(s)
	return copied, int32(status), failure(status, err)
}

// A run in progress. A panic must not leave the callback: it is carried around the library.
type running struct {
	onChunk  func(Chunk) bool
	panicked any
}

//export goOnChunk
func goOnChunk(user unsafe.Pointer, chunk *C.inlay_chunk) (stop C.int32_t) {
	run := (*(*cgo.Handle)(user)).Value().(*running)
	defer func() {
		if run.panicked = recover(); run.panicked != nil {
			stop = 1
		}
	}()
	if !run.onChunk(copyChunk(chunk)) {
		return 1
	}
	return 0
}

// Runs to the end of the text, or until onChunk returns false; the result is the finish reason.
func (s *Session) Run(onChunk func(Chunk) bool) (int32, error) {
	last := C.inlay_chunk{}
	last.struct_size = C.uint32_t(unsafe.Sizeof(last))
	run := &running{onChunk: onChunk}
	handle := cgo.NewHandle(run)
	defer handle.Delete()
	var err *C.inlay_error
	status := C.inlay_session_run(s.handle, C.on_chunk(), unsafe.Pointer(&handle), &last, &err)
	runtime.KeepAlive(s)
	failed := failure(status, err)
	if run.panicked != nil {
		panic(run.panicked)
	}
	return int32(last.finish_reason), failed
}

func (s *Session) Cancel() {
	C.inlay_session_cancel(s.handle)
	runtime.KeepAlive(s)
}

func (s *Session) Stats() (C.inlay_session_stats, error) {
	stats := C.inlay_session_stats{}
	stats.struct_size = C.uint32_t(unsafe.Sizeof(stats))
	var err *C.inlay_error
	status := C.inlay_session_get_stats(s.handle, &stats, &err)
	runtime.KeepAlive(s)
	return stats, failure(status, err)
}
