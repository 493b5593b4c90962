/* clang-format off */
/*
 * Inlay for C++17: a thin, header-only face on inlay.h.
 *
 *     inlay::Engine engine("model.gguf");
 *     inlay::Cache cache(engine);
 *     inlay::Session session(cache);
 *     session.append("The capital of France is", INLAY_TEXT_ADD_SPECIAL);
 *     for (std::string_view text : session.generate()) std::cout << text;
 *
 * inlay.h is the contract and says what each call does; this header changes how it is said:
 *
 *   Errors      A status below 0 becomes an inlay::Error. Outcomes (INLAY_END, INLAY_MORE) are values.
 *   Handles     Workers, Engine and Cache are cheap to copy: a copy shares the same object. A Session is one sequence,
 *               used by one thread at a time, so it can only be moved. Moves do not throw. A moved-from handle is
 *               empty, and using it throws INLAY_E_INVALID_ARGUMENT. Any order of destruction is fine.
 *   Options     EngineOptions and its like are the C structs with struct_size filled in and zeros (defaults) elsewhere;
 *               so are the results, EngineInfo and its like. Flags are inlay.h's constants.
 *   Callbacks   Are std::functions. What one throws is carried around the C code and thrown again by the call; what a
 *               Log throws is dropped.
 *   Views       A Chunk, the text of a Generation and Logits are borrowed until the next call on their session.
 *
 * Nothing here needs RTTI. The inline namespace carries the version of this wrapper, so that parts of one program may
 * be compiled against different versions of it, and so that its names never meet those inside a static libinlay.
 */
/* clang-format on */
#ifndef INLAY_INLAY_HPP
#define INLAY_INLAY_HPP

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "inlay/inlay.h"

namespace inlay {
inline namespace api_v0 {

/* A failed call: what() is the library's sentence, code() the status (INLAY_E_*), name() the status's name. */
class Error : public std::runtime_error {
public:
    Error(std::int32_t code, const char* message) : std::runtime_error(message), code_(code) {}
    std::int32_t code() const noexcept { return code_; }
    const char* name() const noexcept { return inlay_status_name(code_); }

private:
    std::int32_t code_;
};

namespace detail {

// Passes outcomes on and turns an error, which it takes over, into an exception.
inline std::int32_t check(std::int32_t status, inlay_error* error) {
    if (status >= 0) return status;
    struct Owner {
        inlay_error* error;
        ~Owner() { inlay_error_release(error); }
    } owner{error};
    throw Error(status, error ? inlay_error_message(error) : inlay_status_name(status));
}

// Calls `function(arguments..., &error)` and checks what it returns.
template <class Function, class... Arguments>
std::int32_t call(Function function, Arguments... arguments) {
    inlay_error* error = nullptr;
    const std::int32_t status = function(arguments..., &error);
    return check(status, error);
}

// Runs `fill(buffer, capacity, &needed, &error)` into a container, first with room for `guess` elements. Never passes a
// NULL buffer, which would only measure.
template <class Container, class Fill>
Container filled(std::size_t guess, Fill fill) {
    Container result;
    result.resize(guess ? guess : 1);
    for (;;) {
        std::size_t needed = 0;
        inlay_error* error = nullptr;
        const std::int32_t status = fill(result.data(), result.size(), &needed, &error);
        if (status != INLAY_E_BUFFER_TOO_SMALL) {
            check(status, error);
            result.resize(needed);
            return result;
        }
        inlay_error_release(error);
        result.resize(needed);
    }
}

// A struct of inlay.h that knows its size.
template <class Struct>
struct Sized : Struct {
    Sized() noexcept : Struct{} { this->struct_size = sizeof(Struct); }
};

// A std::function behind a C callback: the exception that it threw waits here until the C code has returned.
template <class Function>
struct Callback {
    const Function& function;
    std::exception_ptr thrown;
    bool stopped = false;

    template <class... Arguments>
    std::int32_t invoke(const Arguments&... arguments) noexcept {
        try {
            stopped = !function(arguments...);
        } catch (...) {
            thrown = std::current_exception();
            stopped = true;
        }
        return stopped ? 1 : 0;
    }
};

template <class Object>
struct Lifetime;

template <>
struct Lifetime<inlay_workers> {
    static void retain(const inlay_workers* object) noexcept { inlay_workers_retain(object); }
    static void release(const inlay_workers* object) noexcept { inlay_workers_release(object); }
};

template <>
struct Lifetime<inlay_engine> {
    static void retain(const inlay_engine* object) noexcept { inlay_engine_retain(object); }
    static void release(const inlay_engine* object) noexcept { inlay_engine_release(object); }
};

template <>
struct Lifetime<inlay_cache> {
    static void retain(const inlay_cache* object) noexcept { inlay_cache_retain(object); }
    static void release(const inlay_cache* object) noexcept { inlay_cache_release(object); }
};

template <>
struct Lifetime<inlay_session> {
    static void retain(const inlay_session* object) noexcept { inlay_session_retain(object); }
    static void release(const inlay_session* object) noexcept { inlay_session_release(object); }
};

// One reference to an object of the library, or none.
template <class Object>
class Handle {
public:
    Handle() noexcept = default;
    explicit Handle(Object* adopted) noexcept : object_(adopted) {}
    Handle(const Handle& other) noexcept : object_(other.object_) { Lifetime<Object>::retain(object_); }
    Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
    Handle& operator=(Handle other) noexcept {
        std::swap(object_, other.object_);
        return *this;
    }
    ~Handle() { Lifetime<Object>::release(object_); }

    Object* get() const noexcept { return object_; }

private:
    Object* object_ = nullptr;
};

}  // namespace detail

using WorkersOptions = detail::Sized<inlay_workers_options>;
using ModelSource = detail::Sized<inlay_model_source>;
using PageProvider = detail::Sized<inlay_page_provider>;
using Logger = detail::Sized<inlay_logger>;
using EngineOptions = detail::Sized<inlay_engine_options>;
using EngineInfo = detail::Sized<inlay_engine_info>;
using CacheOptions = detail::Sized<inlay_cache_options>;
using CacheStats = detail::Sized<inlay_cache_stats>;
using SessionOptions = detail::Sized<inlay_session_options>;
using SessionStats = detail::Sized<inlay_session_stats>;
using GenerationOptions = detail::Sized<inlay_generation_options>;
using LoadResult = detail::Sized<inlay_load_result>;
using CacheLoadResult = detail::Sized<inlay_cache_load_result>;
using EstimateOptions = detail::Sized<inlay_estimate_options>;
using Estimate = detail::Sized<inlay_estimate>;

/* The version of the library that the program runs with. */
inline const char* version() noexcept {
    return inlay_version();
}

/* What a model will take, from the file's header alone. */
inline Estimate estimate_memory(std::string_view path, const EstimateOptions& options = {}) {
    Estimate estimate;
    detail::call(inlay_estimate_memory, path.data(), path.size(), &options, &estimate);
    return estimate;
}

inline Estimate estimate_memory(const ModelSource& source, const EstimateOptions& options = {}) {
    Estimate estimate;
    detail::call(inlay_estimate_source, &source, &options, &estimate);
    return estimate;
}

/* Compute threads that engines share (EngineOptions::workers), the library's own or lent. Any thread, any time. */
class Workers {
public:
    Workers() noexcept = default;

    explicit Workers(const WorkersOptions& options) {
        inlay_workers* workers = nullptr;
        detail::call(inlay_workers_create, &options, &workers);
        handle_ = detail::Handle<inlay_workers>(workers);
    }

    /* The C handle, borrowed; NULL when empty. */
    inlay_workers* get() const noexcept { return handle_.get(); }
    explicit operator bool() const noexcept { return get() != nullptr; }

    /* Lends the calling thread to a pool created with INLAY_WORKERS_LENT until it is stopped. */
    void run() const { detail::call(inlay_workers_run, get()); }
    /* For good. */
    void stop() const noexcept { inlay_workers_stop(get()); }

private:
    detail::Handle<inlay_workers> handle_;
};

/* A part of a model in memory. */
struct MemoryBlock {
    const void* data;
    std::size_t size;
};

/* One model's weights and tokenizer. Every function may be called from any thread at any time. */
class Engine {
public:
    /* Told about loading: `done` of `total` bytes. Returning false gives up: the constructor throws INLAY_E_CANCELLED.
     */
    using Progress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

    /* Told a record of INLAY_LOG_*, by any thread that is in a call on the engine, its caches or sessions. */
    using Log = std::function<void(std::int32_t level, std::string_view record)>;
    /* Fills `buffer` with bytes of a part, or throws. */
    using Reader = std::function<void(std::uint32_t part, std::uint64_t offset, void* buffer, std::size_t size)>;

    Engine() noexcept = default;

    /* Opens a model file; the path is UTF-8. `progress` and `log` take the place of those in the options. */
    explicit Engine(std::string_view path, const EngineOptions& options = {}, const Progress& progress = {},
                    Log log = {}) {
        *this = opened(options, progress, std::move(log),
                       [&](const EngineOptions* all, inlay_engine** engine, inlay_error** error) {
                           return inlay_engine_open(path.data(), path.size(), all, engine, error);
                       });
    }

    static Engine from_source(const ModelSource& source, const EngineOptions& options = {},
                              const Progress& progress = {}, Log log = {}) {
        return opened(options, progress, std::move(log),
                      [&](const EngineOptions* all, inlay_engine** engine, inlay_error** error) {
                          return inlay_engine_open_source(&source, all, engine, error);
                      });
    }

    /* A model in memory; a split one in several blocks. `owner` is held for as long as the library needs them; without
     * one they must outlive the engine, its caches and sessions. */
    static Engine from_memory(const std::vector<MemoryBlock>& blocks, std::shared_ptr<const void> owner = {},
                              const EngineOptions& options = {}, const Progress& progress = {}, Log log = {}) {
        std::vector<const void*> data;
        std::vector<std::uint64_t> sizes;
        for (const MemoryBlock& block : blocks) {
            data.push_back(block.data);
            sizes.push_back(block.size);
        }
        auto held = std::make_unique<std::shared_ptr<const void>>(std::move(owner));
        ModelSource source;
        source.n_parts = static_cast<std::uint32_t>(blocks.size());
        source.part_sizes = sizes.data();
        source.blocks = data.data();
        source.user = held.get();
        source.on_release = [](void* user) { delete static_cast<std::shared_ptr<const void>*>(user); };
        Engine engine = from_source(source, options, progress, std::move(log));
        static_cast<void>(held.release());
        return engine;
    }

    /* A model, whole or in parts of these sizes, that `read` gives on this thread, during this call. */
    static Engine from_reader(const std::vector<std::uint64_t>& part_sizes, const Reader& read,
                              const EngineOptions& options = {}, const Progress& progress = {}, Log log = {}) {
        const auto always = [&read](std::uint32_t part, std::uint64_t offset, void* buffer, std::size_t size) {
            read(part, offset, buffer, size);
            return true;
        };
        using Callback = detail::Callback<decltype(always)>;
        Callback callback{always, nullptr};
        ModelSource source;
        source.n_parts = static_cast<std::uint32_t>(part_sizes.size());
        source.part_sizes = part_sizes.data();
        source.user = &callback;
        source.read = [](void* user, std::uint32_t part, std::uint64_t offset, void* buffer,
                         std::size_t size) noexcept {
            return static_cast<Callback*>(user)->invoke(part, offset, buffer, size);
        };
        try {
            return from_source(source, options, progress, std::move(log));
        } catch (const Error&) {
            if (callback.thrown) std::rethrow_exception(callback.thrown);
            throw;
        }
    }

    /* Takes over one reference that C code owned. */
    static Engine adopt(inlay_engine* engine) noexcept {
        Engine result;
        result.handle_ = detail::Handle<inlay_engine>(engine);
        return result;
    }
    /* The C handle, borrowed; NULL when empty. */
    inlay_engine* get() const noexcept { return handle_.get(); }
    explicit operator bool() const noexcept { return get() != nullptr; }

    EngineInfo info() const {
        EngineInfo info;
        detail::call(inlay_engine_get_info, get(), &info);
        return info;
    }

    /* The model file's metadata in the file's order, keys and values as text. */
    std::vector<std::pair<std::string, std::string>> metadata() const {
        std::vector<std::pair<std::string, std::string>> entries;
        entries.reserve(inlay_engine_metadata_count(get()));
        for (std::size_t i = 0; i < inlay_engine_metadata_count(get()); ++i) {
            const auto text = [&](auto function) {
                return detail::filled<std::string>(
                    64, [&](char* buffer, std::size_t capacity, std::size_t* needed, inlay_error** error) {
                        return function(get(), i, buffer, capacity, needed, error);
                    });
            };
            std::string key = text(inlay_engine_metadata_key);
            entries.emplace_back(std::move(key), text(inlay_engine_metadata_value));
        }
        return entries;
    }

    /* `flags`: INLAY_TEXT_ADD_SPECIAL, INLAY_TEXT_PARSE_SPECIAL. */
    std::vector<std::int32_t> tokenize(std::string_view text, std::uint32_t flags = 0) const {
        return detail::filled<std::vector<std::int32_t>>(
            text.size() / 2 + 16,
            [&](std::int32_t* buffer, std::size_t capacity, std::size_t* needed, inlay_error** error) {
                return inlay_tokenize(get(), text.data(), text.size(), flags, buffer, capacity, needed, error);
            });
    }

    /* The bytes of a token sequence; `flags`: INLAY_TEXT_SHOW_SPECIAL. */
    std::string detokenize(const std::int32_t* tokens, std::size_t n_tokens, std::uint32_t flags = 0) const {
        return detail::filled<std::string>(
            n_tokens * 6 + 16, [&](char* buffer, std::size_t capacity, std::size_t* needed, inlay_error** error) {
                return inlay_detokenize(get(), tokens, n_tokens, flags, buffer, capacity, needed, error);
            });
    }
    std::string detokenize(const std::vector<std::int32_t>& tokens, std::uint32_t flags = 0) const {
        return detokenize(tokens.data(), tokens.size(), flags);
    }

    /* The bytes that one token adds to a text. */
    std::string token_text(std::int32_t token, std::uint32_t flags = 0) const {
        return detail::filled<std::string>(
            32, [&](char* buffer, std::size_t capacity, std::size_t* needed, inlay_error** error) {
                return inlay_token_text(get(), token, flags, buffer, capacity, needed, error);
            });
    }

    /* The id of INLAY_SPECIAL_*; -1 when the model has none. */
    std::int32_t special_token(std::int32_t which) const {
        std::int32_t token = -1;
        detail::call(inlay_special_token, get(), which, &token);
        return token;
    }

    bool is_end(std::int32_t token) const noexcept { return inlay_token_is_end(get(), token) != 0; }

private:
    /* Calls open(&options, &engine, &error) with the callbacks among the options. */
    template <class Open>
    static Engine opened(EngineOptions options, const Progress& progress, Log log, Open open) {
        detail::call(inlay_check_abi, std::uint32_t{INLAY_VERSION_MAJOR}, std::uint32_t{INLAY_VERSION_MINOR});
        detail::Callback<Progress> callback{progress, nullptr};
        if (progress) {
            options.progress = [](void* user, std::uint64_t done, std::uint64_t total) noexcept {
                return static_cast<detail::Callback<Progress>*>(user)->invoke(done, total);
            };
            options.progress_user = &callback;
        }
        Logger logger;
        std::unique_ptr<Log> held;
        if (log) {
            held = std::make_unique<Log>(std::move(log));
            logger.user = held.get();
            logger.log = [](void* user, std::int32_t level, const char* record, std::size_t size) noexcept {
                try {
                    (*static_cast<Log*>(user))(level, std::string_view(record, size));
                } catch (...) {
                }
            };
            logger.on_release = [](void* user) { delete static_cast<Log*>(user); };
            options.logger = &logger;
        }
        inlay_engine* engine = nullptr;
        inlay_error* error = nullptr;
        const std::int32_t status = open(&options, &engine, &error);
        if (engine) static_cast<void>(held.release());
        Engine result = adopt(engine);
        if (callback.thrown) {
            inlay_error_release(error);
            std::rethrow_exception(callback.thrown);
        }
        detail::check(status, error);
        return result;
    }

    detail::Handle<inlay_engine> handle_;
};

/* Takes the next bytes of what is saved; false: it could not, and the saving throws INLAY_E_IO. */
using SaveTo = std::function<bool(const void* bytes, std::size_t size)>;
/* Gives the next bytes and returns how many: fewer than `size` only where they end. */
using LoadFrom = std::function<std::size_t(void* buffer, std::size_t size)>;

namespace detail {

// What a callback threw comes before what the library made of it.
inline void finish(const std::exception_ptr& thrown, std::int32_t status, inlay_error* error) {
    if (thrown) {
        inlay_error_release(error);
        std::rethrow_exception(thrown);
    }
    check(status, error);
}

// Calls `save(callback, user, &error)`.
template <class Save>
void save_to(const SaveTo& write, Save save) {
    Callback<SaveTo> callback{write, nullptr};
    const inlay_save_callback trampoline = [](void* user, const void* bytes, std::size_t size) noexcept {
        return static_cast<Callback<SaveTo>*>(user)->invoke(bytes, size);
    };
    inlay_error* error = nullptr;
    const std::int32_t status = save(trampoline, &callback, &error);
    finish(callback.thrown, status, error);
}

// Calls `load(callback, user, &error)`.
template <class Load>
void load_from(const LoadFrom& read, Load load) {
    struct Reading {
        const LoadFrom& read;
        std::exception_ptr thrown;
    } reading{read, nullptr};
    const inlay_load_callback trampoline = [](void* user, void* buffer, std::size_t size,
                                              std::size_t* n_read) noexcept -> std::int32_t {
        auto& from = *static_cast<Reading*>(user);
        try {
            *n_read = from.read(buffer, size);
            return 0;
        } catch (...) {
            from.thrown = std::current_exception();
            return 1;
        }
    };
    inlay_error* error = nullptr;
    const std::int32_t status = load(trampoline, &reading, &error);
    finish(reading.thrown, status, error);
}

// Calls `save(buffer, capacity, &needed, &error)` until the buffer has room.
template <class Save>
std::vector<unsigned char> saved(Save save) {
    std::size_t needed = 0;
    inlay_error* error = nullptr;
    check(save(static_cast<void*>(nullptr), std::size_t{0}, &needed, &error), error);
    return filled<std::vector<unsigned char>>(needed, save);
}

}  // namespace detail

/* Keys and values of an engine's sessions, in a fixed budget of bytes. Any thread, any time. */
class Cache {
public:
    Cache() noexcept = default;

    explicit Cache(const Engine& engine, const CacheOptions& options = {}) {
        inlay_cache* cache = nullptr;
        detail::call(inlay_cache_create, engine.get(), &options, &cache);
        handle_ = detail::Handle<inlay_cache>(cache);
    }

    /* Takes over one reference that C code owned. */
    static Cache adopt(inlay_cache* cache) noexcept {
        Cache result;
        result.handle_ = detail::Handle<inlay_cache>(cache);
        return result;
    }
    inlay_cache* get() const noexcept { return handle_.get(); }
    explicit operator bool() const noexcept { return get() != nullptr; }

    /* Bytes of cache that one sequence of `n_tokens` takes: a budget for one session. */
    static std::uint64_t bytes_for(const Engine& engine, std::uint64_t n_tokens, const CacheOptions& options = {}) {
        std::uint64_t bytes = 0;
        detail::call(inlay_cache_bytes_for, engine.get(), &options, n_tokens, &bytes);
        return bytes;
    }

    CacheStats stats() const {
        CacheStats stats;
        detail::call(inlay_cache_get_stats, get(), &stats);
        return stats;
    }

    /* Gives up the blocks that no session and no pin holds; trim() also their memory. */
    void clear() const { detail::call(inlay_cache_clear, get()); }
    void trim() const { detail::call(inlay_cache_trim, get()); }

    /* Holds what the cache has of a prefix until unpin(); `n_held` receives how many tokens that is. */
    std::uint64_t pin(const std::vector<std::int32_t>& tokens, std::uint64_t cache_salt = 0,
                      std::uint64_t* n_held = nullptr) const {
        std::uint64_t pin = 0;
        detail::call(inlay_cache_pin, get(), tokens.data(), tokens.size(), cache_salt, &pin, n_held);
        return pin;
    }
    void unpin(std::uint64_t pin) const { detail::call(inlay_cache_unpin, get(), pin); }

    /* What the pins hold, for load() in another process. */
    void save(const SaveTo& write) const {
        detail::save_to(write, [this](inlay_save_callback callback, void* user, inlay_error** error) {
            return inlay_cache_save(get(), callback, user, error);
        });
    }
    std::vector<unsigned char> save() const {
        return detail::saved([this](void* buffer, std::size_t capacity, std::size_t* needed, inlay_error** error) {
            return inlay_cache_save_to_buffer(get(), buffer, capacity, needed, error);
        });
    }

    /* Pins what save() wrote. `flags`: INLAY_LOAD_TRUSTED, for bytes that nobody else could have changed. */
    CacheLoadResult load(const LoadFrom& read, std::uint32_t flags) const {
        CacheLoadResult result;
        detail::load_from(read, [&](inlay_load_callback callback, void* user, inlay_error** error) {
            return inlay_cache_load(get(), flags, callback, user, &result, error);
        });
        return result;
    }
    CacheLoadResult load(const std::vector<unsigned char>& saved, std::uint32_t flags) const {
        CacheLoadResult result;
        detail::call(inlay_cache_load_from_buffer, get(), flags, saved.data(), saved.size(), &result);
        return result;
    }

private:
    detail::Handle<inlay_cache> handle_;
};

/* What one step delivered. Borrowed: valid until the next call on its session. */
class Chunk {
public:
    Chunk() noexcept = default;
    explicit Chunk(const inlay_chunk& chunk) noexcept { static_cast<inlay_chunk&>(chunk_) = chunk; }

    /* New text in whole UTF-8 characters; may be empty. */
    std::string_view text() const noexcept { return {chunk_.text ? chunk_.text : "", chunk_.text_size}; }

    /* The tokens generated by the step: [begin(), end()). */
    const std::int32_t* begin() const noexcept { return chunk_.tokens; }
    const std::int32_t* end() const noexcept { return chunk_.tokens + chunk_.n_tokens; }
    std::size_t size() const noexcept { return chunk_.n_tokens; }

    /* INLAY_FINISH_*; INLAY_FINISH_NONE while the text goes on. */
    std::int32_t finish_reason() const noexcept { return chunk_.finish_reason; }
    bool ended() const noexcept { return chunk_.finish_reason != INLAY_FINISH_NONE; }

private:
    friend class Session;
    friend class Generation;
    detail::Sized<inlay_chunk> chunk_;
};

/* Rows of logits. Borrowed: valid until the next call on their session. */
struct Logits {
    const float* data = nullptr;  // [n_rows, n_vocabulary]
    std::size_t n_rows = 0;
    std::size_t n_vocabulary = 0;

    const float* row(std::size_t index) const noexcept { return data + index * n_vocabulary; }
};

/*
 * The text that a session is generating, as a range to walk through once:
 *
 *     for (std::string_view text : session.generate()) ...
 *
 * Each element is new text in whole characters and is valid until the next one. Leaving the loop early leaves the
 * session where it is; another generate() goes on from there. The range shares the session, which may be moved
 * meanwhile.
 */
class Generation {
public:
    struct Sentinel {};

    class Iterator {
    public:
        using iterator_category = std::input_iterator_tag;
        using value_type = std::string_view;
        using difference_type = std::ptrdiff_t;
        using pointer = const std::string_view*;
        using reference = std::string_view;

        std::string_view operator*() const noexcept { return generation_->chunk_.text(); }
        Iterator& operator++() {
            generation_->advance();
            return *this;
        }
        void operator++(int) { ++*this; }

        friend bool operator==(const Iterator& it, Sentinel) noexcept { return it.at_end(); }
        friend bool operator==(Sentinel, const Iterator& it) noexcept { return it.at_end(); }
        friend bool operator!=(const Iterator& it, Sentinel) noexcept { return !it.at_end(); }
        friend bool operator!=(Sentinel, const Iterator& it) noexcept { return !it.at_end(); }

    private:
        friend class Generation;
        explicit Iterator(Generation* generation) noexcept : generation_(generation) {}
        bool at_end() const noexcept { return generation_->exhausted_; }
        Generation* generation_;
    };

    Generation(const Generation&) = delete;
    Generation& operator=(const Generation&) = delete;

    /* Computes up to the first text. */
    Iterator begin() {
        advance();
        return Iterator(this);
    }
    Sentinel end() const noexcept { return {}; }

    /* The step that delivered the current text. */
    const Chunk& chunk() const noexcept { return chunk_; }

    /* INLAY_FINISH_*, once the range has ended. */
    std::int32_t finish_reason() const noexcept { return chunk_.finish_reason(); }

private:
    friend class Session;
    explicit Generation(const detail::Handle<inlay_session>& session) noexcept : session_(session) {}

    // Steps that complete no character, and those of a long prompt, are passed over.
    void advance() {
        do {
            if (chunk_.ended()) {
                exhausted_ = true;
                return;
            }
            detail::call(inlay_session_next, session_.get(), &chunk_.chunk_);
        } while (chunk_.text().empty());
    }

    detail::Handle<inlay_session> session_;
    Chunk chunk_;
    bool exhausted_ = false;
};

/* Cancels a session from other threads. Copies share the session and keep it alive. */
class Canceller {
public:
    void cancel() const noexcept { inlay_session_cancel(session_.get()); }

private:
    friend class Session;
    explicit Canceller(const detail::Handle<inlay_session>& session) noexcept : session_(session) {}
    detail::Handle<inlay_session> session_;
};

/* One sequence of tokens. One thread at a time; cancel(), length() and stats() from any thread. */
class Session {
public:
    /* Told about each chunk; returning false stops run(). */
    using OnChunk = std::function<bool(const Chunk& chunk)>;

    Session() noexcept = default;
    Session(Session&&) noexcept = default;
    Session& operator=(Session&&) noexcept = default;
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
    ~Session() = default;

    explicit Session(const Cache& cache, const SessionOptions& options = {}) {
        inlay_session* session = nullptr;
        detail::call(inlay_session_create, cache.get(), &options, &session);
        handle_ = detail::Handle<inlay_session>(session);
    }

    /* Takes over one reference that C code owned. */
    static Session adopt(inlay_session* session) noexcept {
        Session result;
        result.handle_ = detail::Handle<inlay_session>(session);
        return result;
    }
    inlay_session* get() const noexcept { return handle_.get(); }
    explicit operator bool() const noexcept { return get() != nullptr; }

    /* Text at the end of the sequence. `flags` decide about special tokens: INLAY_TEXT_ADD_SPECIAL for a sequence's
     * first text, 0 for what continues it, INLAY_TEXT_PARSE_SPECIAL only for text that the program wrote itself. */
    void append(std::string_view text, std::uint32_t flags) {
        detail::call(inlay_session_append_text, get(), text.data(), text.size(), flags);
    }
    void append(const std::int32_t* tokens, std::size_t n_tokens) {
        detail::call(inlay_session_append_tokens, get(), tokens, n_tokens);
    }
    void append(const std::vector<std::int32_t>& tokens) { append(tokens.data(), tokens.size()); }

    std::uint64_t length() const {
        std::uint64_t n_tokens = 0;
        detail::call(inlay_session_length, get(), &n_tokens);
        return n_tokens;
    }

    /* The ids of the sequence from position `first` on. */
    std::vector<std::int32_t> tokens(std::uint64_t first = 0) const {
        return detail::filled<std::vector<std::int32_t>>(
            64, [&](std::int32_t* buffer, std::size_t capacity, std::size_t* needed, inlay_error** error) {
                return inlay_session_tokens(get(), first, buffer, capacity, needed, error);
            });
    }

    void truncate(std::uint64_t n_tokens) { detail::call(inlay_session_truncate, get(), n_tokens); }
    void reset() { detail::call(inlay_session_reset, get()); }

    /* Another session with the first `n_tokens` tokens, sharing their blocks; by default all. */
    Session fork(std::uint64_t n_tokens = UINT64_MAX) {
        inlay_session* forked = nullptr;
        detail::call(inlay_session_fork, get(), n_tokens, &forked);
        return adopt(forked);
    }

    /* How tokens are chosen and when the text ends; a new session is greedy. */
    void set_generation(const GenerationOptions& options) {
        detail::call(inlay_session_set_generation, get(), &options);
    }

    /* One step: the next token, an empty chunk that has not ended (a part of a long prompt is done), or the end. */
    Chunk next() {
        Chunk chunk;
        detail::call(inlay_session_next, get(), &chunk.chunk_);
        return chunk;
    }

    /* The text to come, as a range. */
    Generation generate() { return Generation(handle_); }
    Generation generate(const GenerationOptions& options) {
        set_generation(options);
        return Generation(handle_);
    }

    /* Generates to the end and returns the finish reason; INLAY_FINISH_CANCELLED also when `on_chunk` returned false.
     */
    std::int32_t run(const OnChunk& on_chunk = {}) {
        detail::Callback<OnChunk> callback{on_chunk, nullptr};
        const inlay_chunk_callback trampoline = [](void* user, const inlay_chunk* chunk) noexcept {
            return static_cast<detail::Callback<OnChunk>*>(user)->invoke(Chunk(*chunk));
        };
        detail::Sized<inlay_chunk> last;
        inlay_error* error = nullptr;
        const std::int32_t status = inlay_session_run(get(), on_chunk ? trampoline : nullptr, &callback, &last, &error);
        if (callback.stopped) {
            inlay_error_release(error);
            if (callback.thrown) std::rethrow_exception(callback.thrown);
            return INLAY_FINISH_CANCELLED;
        }
        detail::check(status, error);
        return last.finish_reason;
    }

    /* Stops the call that runs on the session, or the next one. Any thread; see Canceller for one that outlives this.
     */
    void cancel() const noexcept { inlay_session_cancel(get()); }
    Canceller canceller() const noexcept { return Canceller(handle_); }

    /* Appends and computes tokens at once, and the logits of rows `logits_from` on. */
    void forward(const std::int32_t* tokens, std::size_t n_tokens, std::size_t logits_from) {
        detail::call(inlay_session_forward, get(), tokens, n_tokens, logits_from);
    }

    Logits logits() {
        Logits logits;
        detail::call(inlay_session_logits, get(), &logits.data, &logits.n_rows, &logits.n_vocabulary);
        return logits;
    }

    using SaveTo = inlay::SaveTo;
    using LoadFrom = inlay::LoadFrom;

    /* All that load() needs to go on exactly as this session would. */
    void save(const SaveTo& write) {
        detail::save_to(write, [this](inlay_save_callback callback, void* user, inlay_error** error) {
            return inlay_session_save(get(), callback, user, error);
        });
    }
    std::vector<unsigned char> save() {
        return detail::saved([this](void* buffer, std::size_t capacity, std::size_t* needed, inlay_error** error) {
            return inlay_session_save_to_buffer(get(), buffer, capacity, needed, error);
        });
    }

    /* Into an empty session. `flags`: INLAY_LOAD_*. */
    LoadResult load(const LoadFrom& read, std::uint32_t flags = 0) {
        LoadResult result;
        detail::load_from(read, [&](inlay_load_callback callback, void* user, inlay_error** error) {
            return inlay_session_load(get(), flags, callback, user, &result, error);
        });
        return result;
    }
    LoadResult load(const std::vector<unsigned char>& saved, std::uint32_t flags = 0) {
        LoadResult result;
        detail::call(inlay_session_load_from_buffer, get(), flags, saved.data(), saved.size(), &result);
        return result;
    }

    SessionStats stats() const {
        SessionStats stats;
        detail::call(inlay_session_get_stats, get(), &stats);
        return stats;
    }

private:
    detail::Handle<inlay_session> handle_;
};

/* What step() brought for one session. */
struct StepResult {
    std::int32_t status = INLAY_OK;  // as inlay_session_next would have returned
    Chunk chunk;
    std::string error;  // the sentence, for a status below 0
};

/* Session::next for several sessions by one thread, in one step. A session's failure is in its result; only a failure
 * of the whole call throws. */
inline std::vector<StepResult> step(const std::vector<Session*>& sessions) {
    const std::size_t n = sessions.size();
    std::vector<inlay_session*> handles(n);
    for (std::size_t i = 0; i < n; ++i) handles[i] = sessions[i] ? sessions[i]->get() : nullptr;
    std::vector<inlay_chunk> chunks(n);
    std::vector<std::int32_t> statuses(n);
    std::vector<inlay_error*> errors(n);
    std::vector<StepResult> results(n);
    detail::call(inlay_step, handles.data(), n, chunks.data(), sizeof(inlay_chunk), statuses.data(), errors.data());
    struct Owner {
        std::vector<inlay_error*>& errors;
        ~Owner() {
            for (inlay_error* error : errors) inlay_error_release(error);
        }
    } owner{errors};
    for (std::size_t i = 0; i < n; ++i) {
        results[i].status = statuses[i];
        results[i].chunk = Chunk(chunks[i]);
        if (errors[i]) results[i].error = inlay_error_message(errors[i]);
    }
    return results;
}

static_assert(std::is_nothrow_move_constructible_v<Engine> && std::is_nothrow_move_assignable_v<Engine>);
static_assert(std::is_nothrow_move_constructible_v<Cache> && std::is_nothrow_move_assignable_v<Cache>);
static_assert(std::is_nothrow_move_constructible_v<Session> && std::is_nothrow_move_assignable_v<Session>);

}  // namespace api_v0
}  // namespace inlay

#endif
