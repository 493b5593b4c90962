/* clang-format off */
/*
 * Inlay: text generation by large language models inside your program.
 *
 * An engine holds one model's weights. A cache holds keys and values in a fixed budget of bytes. A session is one sequence
 * of tokens in a cache. Open, create, append, next:
 *
 *     inlay_engine_open -> inlay_cache_create -> inlay_session_create -> inlay_session_append_text -> inlay_session_next ...
 *
 * Rules that hold for every function (docs/abi.md, docs/ownership-and-threads.md and docs/errors.md say why):
 *
 *   Status     Functions that can fail return a status: 0 is success, above 0 an outcome, below 0 an error. On an error
 *              every output parameter is NULL or zero, unless its text says otherwise, and all handles go on working.
 *   Error      The last parameter `error` may be NULL. Otherwise it is overwritten on entry with NULL and on an error with
 *              an object of the caller, to be freed by inlay_error_release. There is no thread-local state.
 *   Handles    Workers, engine, cache and session are reference-counted: create and open give one reference, retain
 *              adds one, release takes one away. A session holds its cache, a cache its engine, an engine its workers:
 *              release in any order, from any thread.
 *              A const handle in a signature means: any thread, also while other calls on the handle run. Other session
 *              functions want one thread at a time; an overlapping call returns INLAY_E_BUSY and changes nothing.
 *   Structs    `struct_size` comes first: sizeof(the struct) as you compile it. Structs grow only at their end. In options,
 *              0 or NULL means a field's default, so a struct with its size and zeros is valid. Bytes that this library
 *              does not know must be zero, or the call returns INLAY_E_UNSUPPORTED. In results, the library fills the fields
 *              that both sides know.
 *   Strings    UTF-8 with a length in bytes; SIZE_MAX: the text ends at its NUL. Paths are UTF-8 on every system.
 *   Buffers    `(buffer, capacity, needed)`: `*needed` is what the whole result takes. With a NULL buffer the call only
 *              measures and succeeds. With too small a capacity it returns INLAY_E_BUFFER_TOO_SMALL, writes nothing into the
 *              buffer and sets `*needed`. Text in buffers is not NUL-terminated.
 *   Callbacks  Run on the thread that made the call, must return normally, and must not call into the same session.
 *              on_release callbacks say that something of the host's is not needed any more: once, on the thread that
 *              gave it up, and only if the call that was to take it succeeded: after a failed call nothing is held.
 *   Stack      Calls take at most 128 KiB of the calling thread's stack.
 *   Process    Nothing is printed. No signal handler, locale, environment variable, working directory or floating-point
 *              mode is changed. In a child made by fork(), calls on inherited handles return INLAY_E_UNSUPPORTED, those
 *              that return no status 0.
 *
 * Everything here is available since 0.1.0 unless marked otherwise. Until 1.0 the ABI may change between minor releases; each
 * change is a line under "ABI" in CHANGELOG.md.
 */
/* clang-format on */
#ifndef INLAY_INLAY_H
#define INLAY_INLAY_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32) && !defined(INLAY_STATIC)
#if defined(INLAY_BUILD)
#define INLAY_API __declspec(dllexport)
#else
#define INLAY_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define INLAY_API __attribute__((visibility("default")))
#else
#define INLAY_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- library */

#define INLAY_VERSION_MAJOR 0
#define INLAY_VERSION_MINOR 1
#define INLAY_VERSION_PATCH 0

/* Status values. Frozen: new ones are appended. */
#define INLAY_OK 0
#define INLAY_END 1                   /* the session has ended its text; the chunk says why */
#define INLAY_MORE 2                  /* nothing to deliver yet: call again */
#define INLAY_E_INVALID_ARGUMENT (-1) /* an argument is outside its documented range; the message names it */
#define INLAY_E_OUT_OF_MEMORY (-2)
#define INLAY_E_IO (-3)           /* a file could not be opened or read, or a reader failed */
#define INLAY_E_FORMAT (-4)       /* a file contradicts its format; the message names the field */
#define INLAY_E_UNSUPPORTED (-5)  /* valid, but not something this library or build does */
#define INLAY_E_BUSY (-6)         /* the session is inside a call already, of another thread or of this one */
#define INLAY_E_CANCELLED (-7)    /* the operation was cancelled by the host */
#define INLAY_E_CACHE_FULL (-8)   /* the cache has too few free blocks; nothing was changed */
#define INLAY_E_CONTEXT_FULL (-9) /* the session's context has no room for the tokens; nothing was changed */
#define INLAY_E_STATE (-10)       /* the call does not fit the session's state; the message says what is missing */
#define INLAY_E_INTERNAL (-11)    /* a defect of this library */
#define INLAY_E_BUFFER_TOO_SMALL (-12)
#define INLAY_E_MISMATCH (-13) /* valid, but of another model, or for a cache of other types, or other arithmetic */

typedef struct inlay_error inlay_error;
typedef struct inlay_workers inlay_workers;
typedef struct inlay_engine inlay_engine;
typedef struct inlay_cache inlay_cache;
typedef struct inlay_session inlay_session;

/* The library's version as "MAJOR.MINOR.PATCH", a static string. Any thread. */
INLAY_API const char* inlay_version(void);

/*
 * Whether this library serves a program compiled against the header of the given version: call it once after loading
 * with INLAY_VERSION_MAJOR and INLAY_VERSION_MINOR. INLAY_OK, or INLAY_E_UNSUPPORTED when the major version differs,
 * when the program's minor version is newer, or, before 1.0, when the minor versions differ. Any thread.
 */
INLAY_API int32_t inlay_check_abi(uint32_t major, uint32_t minor, inlay_error** error);

/* The name of a status, such as "INLAY_E_FORMAT"; "INLAY_UNKNOWN" for others. A static string. Any thread. */
INLAY_API const char* inlay_status_name(int32_t status);

/* ------------------------------------------------------------------ error */

/* The status that the failed call returned; INLAY_OK for NULL. Any thread. */
INLAY_API int32_t inlay_error_code(const inlay_error* error);

/* What went wrong, one UTF-8 sentence, NUL-terminated, valid until the error is released; "" for NULL. Any thread. */
INLAY_API const char* inlay_error_message(const inlay_error* error);

/* Frees an error. NULL is allowed. Any thread. */
INLAY_API void inlay_error_release(inlay_error* error);

/* ---------------------------------------------------------------- workers */

/* inlay_workers_options.flags */
#define INLAY_WORKERS_LENT 1u /* no thread is started: the host's threads work inside inlay_workers_run */

typedef struct inlay_workers_options {
    uint32_t struct_size;
    uint32_t flags;     /* INLAY_WORKERS_* */
    uint32_t n_threads; /* that compute, a caller's included; 0: one per available processor; at most 256 */
    uint32_t reserved;  /* zero */
} inlay_workers_options;

INLAY_API int32_t inlay_workers_options_init(inlay_workers_options* options, uint32_t struct_size);

/*
 * Creates a pool of compute threads for inlay_engine_options.workers: engines that share it do not have more threads
 * than processors together. n_threads - 1 threads are started, or none with INLAY_WORKERS_LENT. They sleep while there
 * is nothing to compute. Steps of several engines at once are right, and share the threads. `options` may be NULL.
 * INLAY_E_OUT_OF_MEMORY when the system gives no thread. Any thread.
 */
INLAY_API int32_t inlay_workers_create(const inlay_workers_options* options, inlay_workers** workers,
                                       inlay_error** error);

/*
 * Any thread; NULL is allowed and ignored. An engine holds its workers. With the last handle and the last engine gone
 * the pool ends, as by inlay_workers_stop.
 */
INLAY_API void inlay_workers_retain(const inlay_workers* workers);
INLAY_API void inlay_workers_release(const inlay_workers* workers);

/*
 * Lends the calling thread to the pool: it computes, or sleeps, until the pool is stopped, and INLAY_OK is returned.
 * None has to be inside: the thread that calls for a step then computes alone. Threads may come at any time. The
 * thread's signal mask, name and priority stay the host's. INLAY_E_STATE when the pool was not created with
 * INLAY_WORKERS_LENT, or when n_threads - 1 threads are inside. Any thread.
 */
INLAY_API int32_t inlay_workers_run(const inlay_workers* workers, inlay_error** error);

/*
 * For good: every thread inside inlay_workers_run returns when its current task is done, and later calls return at
 * once. Engines go on, on the threads that call for their steps. Does not wait, and does nothing to a pool without
 * INLAY_WORKERS_LENT. Any thread; NULL is allowed and ignored.
 */
INLAY_API void inlay_workers_stop(const inlay_workers* workers);

/* ------------------------------------------------- what a host can provide */

/* Says that what was given with `user` is not needed any more (see Callbacks above). */
typedef void (*inlay_release_callback)(void* user);

/*
 * Reads a model: fills `buffer` with the `size` bytes at `offset` of part `part`, counted from 0. Never asked for bytes
 * past the part's size. A value other than 0 says that it could not, and the opening returns INLAY_E_IO.
 */
typedef int32_t (*inlay_read_callback)(void* user, uint32_t part, uint64_t offset, void* buffer, size_t size);

/*
 * A model that does not come from a path: blocks of memory, or a reader. It has one part, or, when it is a split GGUF,
 * as many as its key 'split.count' says, in their order. Blocks may have any alignment; they must not change or go
 * until on_release. This version copies all it needs and calls on_release before the opening returns; a later one may
 * keep blocks as long as the engine. A reader is called by the thread that opens, during that call only.
 */
typedef struct inlay_model_source {
    uint32_t struct_size;
    uint32_t n_parts;
    const uint64_t* part_sizes;        /* [n_parts] bytes of each part; copied */
    const void* const* blocks;         /* [n_parts] the parts in memory; copied. NULL: they are read */
    inlay_read_callback read;          /* NULL when there are blocks */
    void* user;                        /* of the callbacks */
    inlay_release_callback on_release; /* the source is not needed any more; may be NULL */
} inlay_model_source;

/* `flags` of the callbacks for pages. Others may come: ignore what is not known. */
#define INLAY_PAGES_LARGE 1u /* reserve: large pages are wanted, for they are read again and again */
#define INLAY_PAGES_NOW 2u   /* commit: the memory is to be taken at once, not when it is touched */

/*
 * Address space for `bytes`, which need not be usable before it is committed; NULL when there is none. The address is a
 * multiple of 4096; large pages need one of 2 MiB. All sizes, also of parts, are multiples of the system's page size.
 */
typedef void* (*inlay_reserve_callback)(void* user, size_t bytes, uint32_t flags);
/*
 * Makes a part of a reservation readable and writable, zero where it was not committed before. A value other than 0
 * says that there is no memory. Parts that are committed already may be among it.
 */
typedef int32_t (*inlay_commit_callback)(void* user, void* address, size_t bytes, uint32_t flags);
/* The content of a part is not needed; it is committed again before it is used. */
typedef void (*inlay_decommit_callback)(void* user, void* address, size_t bytes);
/* Ends a whole reservation, whatever of it is committed. */
typedef void (*inlay_free_callback)(void* user, void* address, size_t bytes);

/*
 * Where an engine takes the memory for weights, caches and intermediate results from, nearly all of what it takes. The
 * callbacks may be called by any thread that is inside a call of the library on the engine, its caches or sessions, by
 * several at once, also during a step; they must not call the library. A failure of `reserve` or `commit` is
 * INLAY_E_OUT_OF_MEMORY of that call, an address that is no multiple of 4096 INLAY_E_INVALID_ARGUMENT.
 */
typedef struct inlay_page_provider {
    uint32_t struct_size;
    uint32_t reserved; /* zero */
    void* user;        /* of the callbacks */
    inlay_reserve_callback reserve;
    inlay_commit_callback commit;     /* NULL: what `reserve` gives is usable and zero */
    inlay_decommit_callback decommit; /* may be NULL */
    inlay_free_callback release;
    inlay_release_callback on_release; /* the engine, its caches and sessions are gone; may be NULL */
} inlay_page_provider;

/* Levels of records: a higher one is graver. Others may come between. */
#define INLAY_LOG_INFO 20    /* what was done, and how long it took */
#define INLAY_LOG_WARNING 30 /* what works, but perhaps not as its owner thinks */

/* A whole record: one line of UTF-8 without its end, `size` bytes and then a NUL. Valid during the call. */
typedef void (*inlay_log_callback)(void* user, int32_t level, const char* record, size_t size);

/*
 * Who is told what is worth telling beside statuses: few records, none in a step. `log` may be called by any thread
 * that is inside a call of the library on the engine, its caches or sessions, by several at once; it must not call the
 * library.
 */
typedef struct inlay_logger {
    uint32_t struct_size;
    int32_t level; /* the least that is told; 0: everything */
    inlay_log_callback log;
    void* user;                        /* of the callbacks */
    inlay_release_callback on_release; /* the engine, its caches and sessions are gone; may be NULL */
} inlay_logger;

/* ----------------------------------------------------------------- engine */

/* inlay_engine_options.flags */
#define INLAY_ENGINE_VOCABULARY_ONLY 1u /* metadata and tokenizer only, for any architecture; no weights, no cache */
/*
 * The weights stay in the file, which is mapped as long as the engine lives, and products use them as they lie there:
 * nothing is copied, opening takes little longer than reading the vocabulary, and processes share the system's file
 * cache. The logits are the same, but tokens take longer: one at a time five to seven times, in long prompts little.
 * As with any mapping, the process dies by SIGBUS, at any time, when somebody truncates the file or it can not be read;
 * a file that is written to gives other logits.
 */
#define INLAY_ENGINE_MAP_FILE 2u

/* inlay_engine_options.compute */
#define INLAY_COMPUTE_AUTO 0 /* quantised weights are multiplied with activations of 8 bits */
#define INLAY_COMPUTE_F32 1  /* activations stay f32: slower, as exact as the weights */

/* inlay_engine_options.instruction_set. All compute the same bits; the slower ones are for comparison. */
#define INLAY_INSTRUCTIONS_BEST 0
#define INLAY_INSTRUCTIONS_PORTABLE 1
#define INLAY_INSTRUCTIONS_AVX2 2
#define INLAY_INSTRUCTIONS_AVX512 3
#define INLAY_INSTRUCTIONS_NEON 4 /* 64-bit ARM with the dot products of ARMv8.2 */

/*
 * Called while a model is opened, on the opening thread: `done` of `total` bytes are loaded. A value other than 0
 * cancels the opening, which then returns INLAY_E_CANCELLED.
 */
typedef int32_t (*inlay_progress_callback)(void* user, uint64_t done, uint64_t total);

typedef struct inlay_engine_options {
    uint32_t struct_size;
    uint32_t flags;           /* INLAY_ENGINE_* */
    uint32_t n_threads;       /* compute threads, the caller's included; 0: one per available processor; at most 256 */
    int32_t compute;          /* INLAY_COMPUTE_* */
    int32_t instruction_set;  /* INLAY_INSTRUCTIONS_*; one that the processor lacks gives INLAY_E_UNSUPPORTED */
    uint32_t max_step_tokens; /* tokens of one step: longer prompts take several; 0: 512; at most 4096 */
    inlay_progress_callback progress; /* may be NULL */
    void* progress_user;
    const inlay_workers* workers; /* compute threads to use, held by the engine; n_threads is then 0. NULL: its own */
    const inlay_page_provider* pages; /* copied; NULL: the system's memory */
    const inlay_logger* logger;       /* copied; NULL: nobody is told */
} inlay_engine_options;

/* Writes exactly `struct_size` bytes of defaults. INLAY_E_INVALID_ARGUMENT for NULL or a size below 8. Any thread. */
INLAY_API int32_t inlay_engine_options_init(inlay_engine_options* options, uint32_t struct_size);

/*
 * Opens a model file (GGUF version 2 or 3) and loads its weights. `options` may be NULL. Reads the file during the call
 * only, but for INLAY_ENGINE_MAP_FILE. A model that is split over several files is opened by its first,
 * NAME-00001-of-0000N.gguf: the others are found beside it by their names; INLAY_E_INVALID_ARGUMENT for the path of
 * another part. Errors: INLAY_E_IO, INLAY_E_FORMAT, INLAY_E_UNSUPPORTED (architecture, tokenizer or tensor type),
 * INLAY_E_CANCELLED, INLAY_E_OUT_OF_MEMORY, INLAY_E_INVALID_ARGUMENT. Any thread.
 */
INLAY_API int32_t inlay_engine_open(const char* path, size_t path_size, const inlay_engine_options* options,
                                    inlay_engine** engine, inlay_error** error);

/*
 * Opens a model from memory or through a reader; otherwise as inlay_engine_open. INLAY_ENGINE_MAP_FILE is refused with
 * INLAY_E_INVALID_ARGUMENT.
 */
INLAY_API int32_t inlay_engine_open_source(const inlay_model_source* source, const inlay_engine_options* options,
                                           inlay_engine** engine, inlay_error** error);

/* Any thread; NULL is allowed and ignored. */
INLAY_API void inlay_engine_retain(const inlay_engine* engine);
INLAY_API void inlay_engine_release(const inlay_engine* engine);

typedef struct inlay_engine_info {
    uint32_t struct_size;
    uint32_t n_vocabulary; /* rows of the logits */
    uint32_t n_layers;     /* 0 with INLAY_ENGINE_VOCABULARY_ONLY, as what follows up to max_step_tokens */
    uint32_t n_embedding;  /* width of the hidden state */
    uint32_t n_heads;      /* query heads of a layer */
    uint32_t n_kv_heads;   /* key-value heads of a layer */
    uint32_t head_dim;
    uint32_t context_tokens; /* tokens that the model was trained to see */
    uint32_t n_threads;      /* compute threads in use */
    int32_t compute;         /* INLAY_COMPUTE_* in use */
    int32_t instruction_set; /* INLAY_INSTRUCTIONS_* in use */
    uint32_t max_step_tokens;
    uint64_t n_tensors;     /* in the file, all parts together */
    uint64_t n_parameters;  /* values of all tensors */
    uint64_t file_bytes;    /* size of the model file, all parts together */
    uint64_t weight_bytes;  /* memory that holds the weights, without a mapped file; 0 with
                             * INLAY_ENGINE_VOCABULARY_ONLY, as the next */
    uint64_t scratch_bytes; /* memory for intermediate results, most that was in use so far */
    uint64_t n_steps; /* steps computed so far; the n_steps of its sessions together, over it, is the mean batch */
} inlay_engine_info;

/* Fills `info`, whose struct_size the caller set. Any thread. */
INLAY_API int32_t inlay_engine_get_info(const inlay_engine* engine, inlay_engine_info* info, inlay_error** error);

/* The number of metadata entries of the model file; 0 for NULL. Any thread. */
INLAY_API size_t inlay_engine_metadata_count(const inlay_engine* engine);

/*
 * Key and value of metadata entry `index` as UTF-8 text; long arrays are shortened to their length and element type.
 * Both follow the rule for buffers. Any thread.
 */
INLAY_API int32_t inlay_engine_metadata_key(const inlay_engine* engine, size_t index, char* buffer, size_t capacity,
                                            size_t* needed, inlay_error** error);
INLAY_API int32_t inlay_engine_metadata_value(const inlay_engine* engine, size_t index, char* buffer, size_t capacity,
                                              size_t* needed, inlay_error** error);

/* ------------------------------------------------------------------- text */

/* Flags of inlay_tokenize and inlay_session_append_text */
#define INLAY_TEXT_ADD_SPECIAL 1u /* add the tokens that the model wants around a text, such as begin-of-sequence */
#define INLAY_TEXT_PARSE_SPECIAL \
    2u /* text that spells a control token becomes it; never set it for what a user typed */

/* Flags of inlay_detokenize and inlay_token_text */
#define INLAY_TEXT_SHOW_SPECIAL 1u /* control tokens give their text; otherwise they give none */

/*
 * Token ids of a text. Bytes that are not UTF-8 are accepted and mapped as the vocabulary can. Time grows linearly with
 * the text, which has at most 2^31 bytes. `tokens`, `capacity` (in tokens) and `needed` follow the rule for buffers.
 * Any thread.
 */
INLAY_API int32_t inlay_tokenize(const inlay_engine* engine, const char* text, size_t text_size, uint32_t flags,
                                 int32_t* tokens, size_t capacity, size_t* needed, inlay_error** error);

/* The bytes of a sequence of tokens; they need not be whole UTF-8 characters. Any thread. */
INLAY_API int32_t inlay_detokenize(const inlay_engine* engine, const int32_t* tokens, size_t n_tokens, uint32_t flags,
                                   char* buffer, size_t capacity, size_t* needed, inlay_error** error);

/* The bytes that one token adds to a text; for some tokens a part of a UTF-8 character. Any thread. */
INLAY_API int32_t inlay_token_text(const inlay_engine* engine, int32_t token, uint32_t flags, char* buffer,
                                   size_t capacity, size_t* needed, inlay_error** error);

#define INLAY_SPECIAL_BOS 1 /* begin of sequence */
#define INLAY_SPECIAL_EOS 2 /* end of sequence */
#define INLAY_SPECIAL_EOT 3 /* end of turn */
#define INLAY_SPECIAL_UNK 4 /* unknown */
#define INLAY_SPECIAL_PAD 5 /* padding */

/* The id of a special token (INLAY_SPECIAL_*) in `*token`, -1 when the model has none. Any thread. */
INLAY_API int32_t inlay_special_token(const inlay_engine* engine, int32_t which, int32_t* token, inlay_error** error);

/* 1 when generation ends at this token, 0 when it does not or when the arguments are not valid. Any thread. */
INLAY_API int32_t inlay_token_is_end(const inlay_engine* engine, int32_t token);

/* ------------------------------------------------------------------ cache */

/* inlay_cache_options.flags */
#define INLAY_CACHE_NO_REUSE 1u   /* sessions never take over what another one computed */
#define INLAY_CACHE_COMMIT_NOW 2u /* memory is taken at creation: a shortage is a status there */

/*
 * Element types of keys and values. INT8 and INT4 take about 52 and 30 % of the memory of F16, open blocks included,
 * and round what attention sees: docs/kv-quantisation.md has how much. A cut or a fork inside a full block of such a
 * cache computes up to 15 tokens again.
 */
#define INLAY_KV_DEFAULT 0 /* F16 */
#define INLAY_KV_F32 1
#define INLAY_KV_F16 2
#define INLAY_KV_BF16 3
#define INLAY_KV_INT8 4
#define INLAY_KV_INT4 5

/* inlay_cache_options.when_full: what becomes of a session for which the cache has no room */
#define INLAY_WHEN_FULL_FAIL 0 /* INLAY_E_CACHE_FULL at once, with nothing changed */
/*
 * It waits until others give room back, first come, first served, and can be cancelled. Sessions that have room go on.
 * inlay_session_next and inlay_step return INLAY_MORE after a tenth of a second of waiting, so that the thread can do
 * something about it. The next call comes before all that arrived later; while the session is in no call, others may be
 * served. Where all wait for each other's blocks, the youngest give theirs up as with PREEMPT.
 */
#define INLAY_WHEN_FULL_WAIT 1
/*
 * Others lose their blocks: sessions whose text has ended first, by how long ago it began, then those whose text began
 * last. What they lost is computed again when they go on; their tokens are the same. A session waits, as with WAIT, for
 * those whose text began before its own, and for pins.
 */
#define INLAY_WHEN_FULL_PREEMPT 2

typedef struct inlay_cache_options {
    uint32_t struct_size;
    uint32_t flags;     /* INLAY_CACHE_* */
    uint64_t bytes;     /* budget, never exceeded, at most the machine's memory; 0: enough for one sequence of the
                         * model's context, at most 1 GiB */
    int32_t key_type;   /* INLAY_KV_* */
    int32_t value_type; /* INLAY_KV_* */
    int32_t when_full;  /* INLAY_WHEN_FULL_* */
    uint32_t reserved;  /* zero */
} inlay_cache_options;

INLAY_API int32_t inlay_cache_options_init(inlay_cache_options* options, uint32_t struct_size);

/*
 * Bytes of a cache for `n_tokens` tokens of one sequence with these options (whose `bytes` is not read), at least what
 * inlay_cache_create takes. `options` may be NULL. Any thread.
 */
INLAY_API int32_t inlay_cache_bytes_for(const inlay_engine* engine, const inlay_cache_options* options,
                                        uint64_t n_tokens, uint64_t* bytes, inlay_error** error);

/*
 * Creates a cache: reserves its budget as address space and takes memory as blocks are used (see
 * INLAY_CACHE_COMMIT_NOW). `options` may be NULL. Any thread.
 */
INLAY_API int32_t inlay_cache_create(const inlay_engine* engine, const inlay_cache_options* options,
                                     inlay_cache** cache, inlay_error** error);

/* Any thread; NULL is allowed and ignored. */
INLAY_API void inlay_cache_retain(const inlay_cache* cache);
INLAY_API void inlay_cache_release(const inlay_cache* cache);

typedef struct inlay_cache_stats {
    uint32_t struct_size;
    uint32_t block_tokens;    /* tokens of one block: 16 */
    uint64_t budget_bytes;    /* what the cache may hold */
    uint64_t block_bytes;     /* bytes of one block in one group of layers */
    uint64_t n_blocks;        /* blocks of the budget, all groups together */
    uint64_t n_used_blocks;   /* held by sessions; shared ones count once */
    uint64_t n_cached_blocks; /* held by no session, kept to be found again, given up when room is needed */
    uint64_t n_free_blocks;
    uint64_t n_shared_blocks;   /* held by more than one session */
    uint64_t used_bytes;        /* bytes of the used blocks */
    uint64_t table_bytes;       /* bytes of block tables and prefix nodes, beside the budget */
    uint64_t n_prefix_hits;     /* times that a session took over computed tokens */
    uint64_t n_reused_tokens;   /* tokens that were not computed again */
    uint64_t n_evicted_blocks;  /* cached blocks given up so far */
    uint64_t n_promised_blocks; /* that sessions may still take for what they were promised: no other can have them */
    uint64_t n_preemptions;     /* times that a session lost its blocks to another */
} inlay_cache_stats;

/* Fills `stats`, whose struct_size the caller set. Any thread. */
INLAY_API int32_t inlay_cache_get_stats(const inlay_cache* cache, inlay_cache_stats* stats, inlay_error** error);

/* Gives up all cached blocks; those that sessions and pins hold stay. Their memory stays with the cache. Any thread. */
INLAY_API int32_t inlay_cache_clear(const inlay_cache* cache, inlay_error** error);

/*
 * inlay_cache_clear, and then the memory of all free blocks goes back to the system (or to the engine's page provider),
 * also what INLAY_CACHE_COMMIT_NOW took. It comes back as blocks are used. Any thread; steps of the cache's sessions
 * wait meanwhile.
 */
INLAY_API int32_t inlay_cache_trim(const inlay_cache* cache, inlay_error** error);

/*
 * Holds what the cache has of a prefix, so that it is not given up before inlay_cache_unpin or the end of the cache.
 * `tokens` [n_tokens] with the `cache_salt` of the sessions that computed it; whole blocks from the beginning on are
 * held, `*n_held` (may be NULL) tells how many tokens that is, also 0. `*pin` receives a number, never 0, that the
 * cache does not give again. Held blocks count as used. Any thread.
 */
INLAY_API int32_t inlay_cache_pin(const inlay_cache* cache, const int32_t* tokens, size_t n_tokens, uint64_t cache_salt,
                                  uint64_t* pin, uint64_t* n_held, inlay_error** error);

/* Ends a pin; its blocks are cached then. INLAY_E_INVALID_ARGUMENT when the cache has no such pin. Any thread. */
INLAY_API int32_t inlay_cache_unpin(const inlay_cache* cache, uint64_t pin, inlay_error** error);

/* ---------------------------------------------------------------- session */

typedef struct inlay_session_options {
    uint32_t struct_size;
    uint32_t context_tokens; /* most tokens of the sequence, at most 2^31 - 1; 0: the model's context; larger than that
                              * is allowed */
    uint64_t cache_salt;     /* only sessions with the same salt share what they computed: keeps users of one cache from
                              * telling, by its speed, what others wrote */
    uint64_t reserve_tokens; /* tokens of each text, beyond its prompt, for which the cache has to have room before the
                              * text's first step; it keeps that room until the text ends, is cancelled or is changed by
                              * the host. So a text of that length is not stopped by a full cache, unless a fork of it
                              * holds what would have come back. A token whose logits inlay_session_forward computed
                              * needs no step, so no room is asked for before the next one. 0: none is kept */
} inlay_session_options;

INLAY_API int32_t inlay_session_options_init(inlay_session_options* options, uint32_t struct_size);

/* Creates an empty session. Takes no block before tokens are computed. `options` may be NULL. Any thread. */
INLAY_API int32_t inlay_session_create(const inlay_cache* cache, const inlay_session_options* options,
                                       inlay_session** session, inlay_error** error);

/* Any thread, also while a call on the session runs: it ends when that call returns. NULL is allowed and ignored. */
INLAY_API void inlay_session_retain(const inlay_session* session);
INLAY_API void inlay_session_release(const inlay_session* session);

/*
 * Puts tokens at the end of the sequence. Nothing is computed: the next inlay_session_next does. `tokens` [n_tokens]
 * are copied. INLAY_E_INVALID_ARGUMENT when an id is outside the vocabulary, INLAY_E_CONTEXT_FULL when they do not fit;
 * nothing is appended then. Text being generated ends: a partial character is given up.
 */
INLAY_API int32_t inlay_session_append_tokens(inlay_session* session, const int32_t* tokens, size_t n_tokens,
                                              inlay_error** error);

/* Tokenizes a text and appends it. `flags`: INLAY_TEXT_ADD_SPECIAL, INLAY_TEXT_PARSE_SPECIAL. */
INLAY_API int32_t inlay_session_append_text(inlay_session* session, const char* text, size_t text_size, uint32_t flags,
                                            inlay_error** error);

/* Tokens of the sequence in `*n_tokens`, those not yet computed included. Any thread. */
INLAY_API int32_t inlay_session_length(const inlay_session* session, uint64_t* n_tokens, inlay_error** error);

/*
 * The ids of the sequence from position `first` on: `tokens`, `capacity` (in tokens) and `needed` follow the rule for
 * buffers.
 */
INLAY_API int32_t inlay_session_tokens(inlay_session* session, uint64_t first, int32_t* tokens, size_t capacity,
                                       size_t* needed, inlay_error** error);

/* Cuts the sequence to its first `n_tokens` tokens (at most its length). Never computes; blocks are given back at once.
 */
INLAY_API int32_t inlay_session_truncate(inlay_session* session, uint64_t n_tokens, inlay_error** error);

/*
 * Creates another session with the first `n_tokens` tokens of this one (at most its length; UINT64_MAX: all), the same
 * options and generation options. Nothing is computed or copied but the tokens: both share the blocks, and whoever
 * writes into a shared partial block copies it first. A fork of all tokens goes on exactly as this session would, its
 * logits, partial character and ending included. Its stats begin at zero; a cancel is not inherited.
 */
INLAY_API int32_t inlay_session_fork(inlay_session* session, uint64_t n_tokens, inlay_session** forked,
                                     inlay_error** error);

/* Makes the session as it was after its creation; generation options stay. */
INLAY_API int32_t inlay_session_reset(inlay_session* session, inlay_error** error);

/* ------------------------------------------------------------- generation */

/* inlay_generation_options.flags */
#define INLAY_GENERATION_IGNORE_END 1u /* go on after tokens that end a text, and deliver them */

typedef struct inlay_generation_options {
    uint32_t struct_size;
    uint32_t flags;          /* INLAY_GENERATION_* */
    uint64_t seed;           /* of sampling; the same seed and sequence give the same tokens. Not read when greedy */
    float temperature;       /* 0: greedy, the most likely token, the lowest id among equals. At most 100 */
    float top_p;             /* keep the most likely tokens that together reach this probability; 0 or 1: all */
    float min_p;             /* keep tokens with at least this part of the best one's probability; 0: all */
    uint32_t top_k;          /* keep this many of the most likely tokens; 0: all */
    uint64_t max_new_tokens; /* tokens until finish reason LENGTH, counted from the last append or set_generation; 0: up
                              * to the context */
} inlay_generation_options;

INLAY_API int32_t inlay_generation_options_init(inlay_generation_options* options, uint32_t struct_size);

/*
 * Sets how the session chooses tokens and when it ends; a new session is greedy, as with NULL `options`. A text that
 * had ended with the reason LENGTH goes on with the next call, if the context has room.
 */
INLAY_API int32_t inlay_session_set_generation(inlay_session* session, const inlay_generation_options* options,
                                               inlay_error** error);

/* inlay_chunk.finish_reason */
#define INLAY_FINISH_NONE 0   /* not ended */
#define INLAY_FINISH_STOP 1   /* the model ended its text */
#define INLAY_FINISH_LENGTH 2 /* max_new_tokens or the context was reached */
#define INLAY_FINISH_STOP_STRING 3
#define INLAY_FINISH_CANCELLED 4

typedef struct inlay_chunk {
    uint32_t struct_size;
    int32_t finish_reason; /* INLAY_FINISH_*; other than NONE with status INLAY_END */
    const int32_t* tokens; /* [n_tokens] tokens generated by this call; a token that ended the text is not among them */
    size_t n_tokens;
    const char* text; /* [text_size] their text in whole UTF-8 characters: a started one waits for its rest */
    size_t text_size;
} inlay_chunk;

/*
 * Computes what was appended and generates the next token. The call does one step at most: threads that call for
 * sessions of one engine at the same time are computed together, a step holds at most max_step_tokens tokens, and no
 * session's tokens depend on the others'.
 * INLAY_OK: the chunk holds a token. INLAY_MORE: the chunk is empty, call again: a part of the prompt is computed, or
 * another session is computing the same tokens and this one waits to take them over, or the cache has no room for it
 * yet (inlay_cache_options.when_full).
 * INLAY_END: the text has ended; the chunk says why and holds the last token, if one came with the end (finish reason
 * LENGTH), and the rest of the text. Calling again gives INLAY_END and an empty chunk until something is appended. A
 * token that ends the text is not part of the sequence. A prompt that fills the context ends at once with LENGTH and is
 * not computed. `chunk` (struct_size set) is filled; its pointers are valid until the next call on the session other
 * than inlay_session_cancel, _length and _get_stats. INLAY_E_STATE when the sequence is empty; INLAY_E_CACHE_FULL when
 * the cache has no room for what is to be computed and reserve_tokens, and does not wait for it, or never could have:
 * release or truncate something and call again; INLAY_E_FORMAT when the model computes no numbers.
 */
INLAY_API int32_t inlay_session_next(inlay_session* session, inlay_chunk* chunk, inlay_error** error);

/* Called with each chunk that is not empty. A value other than 0 ends inlay_session_run, which returns
 * INLAY_E_CANCELLED. */
typedef int32_t (*inlay_chunk_callback)(void* user, const inlay_chunk* chunk);

/*
 * Calls inlay_session_next until the text ends and returns INLAY_END. `on_chunk` may be NULL. `last` (may be NULL, else
 * its struct_size is set) receives the last chunk with the finish reason.
 */
INLAY_API int32_t inlay_session_run(inlay_session* session, inlay_chunk_callback on_chunk, void* user,
                                    inlay_chunk* last, inlay_error** error);

/*
 * inlay_session_next for several sessions by one thread, in one step of each engine: for hosts that run many sessions
 * in one event loop. `sessions` [n_sessions], at most 65,536, each another one. `statuses` [n_sessions] receives what
 * inlay_session_next would return for each; one session's error leaves the others as they are. INLAY_MORE also says
 * that the step had no room for the session: the next one serves it first. `chunks` is an array [n_sessions] of structs
 * of `chunk_size` bytes (sizeof(inlay_chunk) as you compile it; their struct_size is set by the call). `errors`
 * [n_sessions] may be NULL, else each is overwritten with NULL or the session's error, to be released. INLAY_OK when
 * the step was done, whatever the statuses; on an error nothing was done. A session that is inside another call gets
 * the status INLAY_E_BUSY, as does one that is named twice.
 */
INLAY_API int32_t inlay_step(inlay_session* const* sessions, size_t n_sessions, inlay_chunk* chunks, size_t chunk_size,
                             int32_t* statuses, inlay_error** errors, inlay_error** error);

/*
 * Stops the call that runs on the session, or the next one, at the next layer: it returns INLAY_END with the reason
 * INLAY_FINISH_CANCELLED (inlay_session_forward: INLAY_E_CANCELLED). Reported once; append, truncate and reset clear
 * it. The session goes on from the last whole step: the one under way is not counted. Sessions in the same step are not
 * disturbed. Any thread, also from a signal handler: it only sets a flag.
 */
INLAY_API void inlay_session_cancel(const inlay_session* session);

/* ----------------------------------------------------------------- expert */

/*
 * Appends `tokens` [n_tokens] and computes them at once, and the logits of rows logits_from to n_tokens - 1 (row i
 * predicts what follows tokens[i]); logits_from = n_tokens asks for none. Tokens that wait to be computed, as appended
 * ones and the last that inlay_session_next delivered, are computed in the same step: all together at most
 * max_step_tokens, else INLAY_E_STATE. What was computed before and went to another session is computed again first.
 * Waits for room as long as it takes where the cache's when_full says so. A prefix that the cache holds is not taken
 * over. On an error the sequence is as before.
 */
INLAY_API int32_t inlay_session_forward(inlay_session* session, const int32_t* tokens, size_t n_tokens,
                                        size_t logits_from, inlay_error** error);

/*
 * The logits of the last inlay_session_forward ([n_rows, n_vocabulary]) or inlay_session_next ([1, n_vocabulary]), f32.
 * Borrowed until the next call on the session other than inlay_session_cancel, _length and _get_stats. INLAY_E_STATE
 * when there are none. `n_rows` and `n_vocabulary` may be NULL.
 */
INLAY_API int32_t inlay_session_logits(inlay_session* session, const float** logits, size_t* n_rows,
                                       size_t* n_vocabulary, inlay_error** error);

/* ------------------------------------------------------------ persistence */

/* Takes the next `size` bytes. A value other than 0 says that it could not, and the saving returns INLAY_E_IO. */
typedef int32_t (*inlay_save_callback)(void* user, const void* bytes, size_t size);

/*
 * Gives the next bytes: fills `buffer` with `size` bytes and sets `*n_read` to it; to less only where the bytes end. A
 * value other than 0 says that it could not, and the loading returns INLAY_E_IO.
 */
typedef int32_t (*inlay_load_callback)(void* user, void* buffer, size_t size, size_t* n_read);

/*
 * Writes the session through `write`, called with pieces of any size: its tokens, the keys and values that it has of
 * them, generation options, undelivered text and ending, so that what inlay_session_load makes of it goes on exactly as
 * this session would (docs/saved-sessions.md has the format). Its logits are not saved: they are computed again when
 * wanted. The session goes on as before; on an error what was written is not to be loaded. INLAY_E_IO when `write`
 * failed. `user` is passed to it.
 */
INLAY_API int32_t inlay_session_save(inlay_session* session, inlay_save_callback write, void* user,
                                     inlay_error** error);

/* Flags of inlay_session_load */
/*
 * The host knows that the bytes are what this library wrote: full blocks are shared with other sessions of the same
 * cache_salt, as if they had been computed here. Never for bytes that somebody else could have changed: checksums show
 * damage, not intent.
 */
#define INLAY_LOAD_TRUSTED 1u

typedef struct inlay_load_result {
    uint32_t struct_size;
    uint32_t is_shared;     /* 1: full blocks are shared; 0: they and what is computed after them stay the session's
                             * and its forks' */
    uint32_t same_numerics; /* 0: the blocks were computed in another compute mode, or by a library with other
                             * arithmetic. The session goes on, perhaps with other tokens than it would have there, and
                             * shares nothing */
    uint32_t reserved;      /* zero */
    uint64_t n_tokens;
    uint64_t n_computed_tokens; /* of them, those that need not be computed */
} inlay_load_result;

/*
 * Makes an empty session what inlay_session_save wrote, its generation options included; context_tokens, cache_salt and
 * reserve_tokens stay its own, a cancel is cleared. Reads exactly what was written, in order, through `read`; `user` is
 * passed to it. All is read and checked before anything changes: after an error the session is empty and the cache as
 * it was. `flags`: INLAY_LOAD_*. `result` (struct_size set) may be NULL. The bytes are held in memory until then,
 * and steps of the engine wait while they are copied into the cache. The cache gives room as for a text that begins, at
 * once or not at all: by giving up cached blocks and, with INLAY_WHEN_FULL_PREEMPT, those of sessions without a text.
 * Errors: INLAY_E_STATE when the session is not empty, INLAY_E_FORMAT when the bytes are cut or damaged, or hold keys
 * or values that are not finite, INLAY_E_UNSUPPORTED for another version of the format, INLAY_E_MISMATCH for another
 * model file or other types of keys and values, INLAY_E_CONTEXT_FULL, INLAY_E_CACHE_FULL, INLAY_E_IO when `read`
 * failed.
 */
INLAY_API int32_t inlay_session_load(inlay_session* session, uint32_t flags, inlay_load_callback read, void* user,
                                     inlay_load_result* result, inlay_error** error);

/*
 * The same with memory. inlay_session_save_to_buffer follows the rule for buffers, `capacity` and `*needed` in bytes:
 * call it with a NULL `buffer`, then with one of `*needed` bytes. Where the session has changed or lost blocks between
 * the calls, the second one may need more or less: on success `*needed` is what was written. Nothing is written into a
 * buffer that is too small. inlay_session_load_from_buffer takes exactly what was saved: INLAY_E_FORMAT when `size` is
 * more than that. `bytes` is read during the call only.
 */
INLAY_API int32_t inlay_session_save_to_buffer(inlay_session* session, void* buffer, size_t capacity, size_t* needed,
                                               inlay_error** error);
INLAY_API int32_t inlay_session_load_from_buffer(inlay_session* session, uint32_t flags, const void* bytes, size_t size,
                                                 inlay_load_result* result, inlay_error** error);

/*
 * Writes what the cache's pins hold (inlay_cache_pin), so that inlay_cache_load has it ready in another process, say a
 * system prompt: each pin's tokens, salt and whole blocks, in the order of the pins' numbers; what several hold is
 * there once. Pins that hold nothing are left out. Sessions go on meanwhile, pins may be added and ended: those of the
 * call's beginning are saved. On an error what was written is not to be loaded. INLAY_E_IO when `write` failed. `user`
 * is passed to it. Any thread.
 */
INLAY_API int32_t inlay_cache_save(const inlay_cache* cache, inlay_save_callback write, void* user,
                                   inlay_error** error);

typedef struct inlay_cache_load_result {
    uint32_t struct_size;
    uint32_t reserved;  /* zero */
    uint64_t first_pin; /* number of the first of the new pins, for inlay_cache_unpin; 0 when there are none */
    uint64_t n_pins;    /* their numbers follow each other, in the order in which they were saved */
    uint64_t n_tokens;  /* held by each, all pins together */
} inlay_cache_load_result;

/*
 * Pins what inlay_cache_save wrote, beside the pins that the cache has: all of it, or on an error nothing, and
 * sessions, pins and cached blocks are then as before. Sessions of the same salt find it as if it had been computed
 * here. So `flags` has to have INLAY_LOAD_TRUSTED, else the call is INLAY_E_INVALID_ARGUMENT: only for bytes that
 * nobody else could have changed. What the cache has already is not held twice. Takes free and cached blocks, no
 * session's, and does not wait. `read`, called as by inlay_session_load, `user` and `result` (struct_size set; may be
 * NULL) as there. Whether the tokens are those that the host wants today tells inlay_cache_pin: it says how many of
 * them are held. Errors: INLAY_E_FORMAT when the bytes are cut or damaged, INLAY_E_UNSUPPORTED for another version of
 * the format or a cache with INLAY_CACHE_NO_REUSE, INLAY_E_MISMATCH for another model file, other types of keys and
 * values, another compute mode, or a library with other arithmetic, INLAY_E_CACHE_FULL, INLAY_E_IO when `read` failed.
 * Any thread.
 */
INLAY_API int32_t inlay_cache_load(const inlay_cache* cache, uint32_t flags, inlay_load_callback read, void* user,
                                   inlay_cache_load_result* result, inlay_error** error);

/* The same with memory, as inlay_session_save_to_buffer and inlay_session_load_from_buffer. Any thread. */
INLAY_API int32_t inlay_cache_save_to_buffer(const inlay_cache* cache, void* buffer, size_t capacity, size_t* needed,
                                             inlay_error** error);
INLAY_API int32_t inlay_cache_load_from_buffer(const inlay_cache* cache, uint32_t flags, const void* bytes, size_t size,
                                               inlay_cache_load_result* result, inlay_error** error);

/* ---------------------------------------------------------------- metrics */

typedef struct inlay_session_stats {
    uint32_t struct_size;
    uint32_t reserved;            /* zero */
    uint64_t n_prompt_tokens;     /* appended by the host */
    uint64_t n_reused_tokens;     /* of them, found in the cache */
    uint64_t n_computed_tokens;   /* tokens that went through the model, recomputed ones included */
    uint64_t n_recomputed_tokens; /* computed a second time, because their keys and values were gone */
    uint64_t n_generated_tokens;
    uint64_t n_steps;       /* steps that the session took part in */
    uint64_t prompt_ns;     /* time in steps before the first token after an append */
    uint64_t generation_ns; /* time in the other steps */
} inlay_session_stats;

/* Counted since the session's creation. Any thread. */
INLAY_API int32_t inlay_session_get_stats(const inlay_session* session, inlay_session_stats* stats,
                                          inlay_error** error);

typedef struct inlay_estimate_options {
    uint32_t struct_size;
    uint32_t context_tokens;  /* tokens of one sequence, at most 2^31 - 1; 0: the model's context */
    int32_t key_type;         /* INLAY_KV_* */
    int32_t value_type;       /* INLAY_KV_* */
    uint32_t max_step_tokens; /* as in inlay_engine_options */
    uint32_t n_threads;       /* as in inlay_engine_options, or of the workers */
} inlay_estimate_options;

typedef struct inlay_estimate {
    uint32_t struct_size;
    uint32_t context_tokens; /* the context that the sums are for */
    uint64_t weight_bytes;   /* weights in memory */
    uint64_t kv_bytes_per_token;
    uint64_t kv_bytes;        /* most that keys and values of one sequence of context_tokens take at a time: the budget
                                 that a cache for it needs */
    uint64_t scratch_bytes;   /* intermediate results of the largest step */
    uint64_t tokenizer_bytes; /* vocabulary and metadata; 0 when the library does not support the vocabulary */
    uint64_t total_bytes;     /* weights, keys and values, intermediate results and tokenizer */
} inlay_estimate;

INLAY_API int32_t inlay_estimate_options_init(inlay_estimate_options* options, uint32_t struct_size);

/*
 * What a model will take, from the file's header alone; of a split model from its parts', found as by
 * inlay_engine_open: what a process grows by that opens it, creates a cache of kv_bytes and fills one sequence of
 * context_tokens, within some percent. `options` may be NULL. Errors as inlay_engine_open. Any thread.
 */
INLAY_API int32_t inlay_estimate_memory(const char* path, size_t path_size, const inlay_estimate_options* options,
                                        inlay_estimate* estimate, inlay_error** error);

/* The same from a source, which is read during the call only: its on_release is not called. Any thread. */
INLAY_API int32_t inlay_estimate_source(const inlay_model_source* source, const inlay_estimate_options* options,
                                        inlay_estimate* estimate, inlay_error** error);

#ifdef __cplusplus
}
#endif

#endif
