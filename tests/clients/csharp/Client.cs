// The library from C#: handles that the garbage collector releases on its own thread, delegates as callbacks, calls
// from several threads. Usage: client.exe TESTS_DATA
using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

static class Client {
    const int GeneratedTokens = 16;

    static string model;
    static int[] prompt, expected;

    static void Require(bool condition, string what) {
        if (!condition) throw new Exception("not so: " + what);
    }

    // ---- one call each

    static EngineHandle Open(string path) {
        var options = new Native.EngineOptions {
            StructSize = Native.SizeOf<Native.EngineOptions>(), Threads = 2, Compute = Native.ComputeF32};
        byte[] bytes = Encoding.UTF8.GetBytes(path);
        EngineHandle engine;
        IntPtr error;
        Native.Check(Native.inlay_engine_open(bytes, (UIntPtr)bytes.Length, ref options, out engine, out error), error);
        return engine;
    }

    static CacheHandle CreateCache(EngineHandle engine) {
        var options = new Native.CacheOptions {
            StructSize = Native.SizeOf<Native.CacheOptions>(), KeyType = Native.KvF32, ValueType = Native.KvF32};
        CacheHandle cache;
        IntPtr error;
        Native.Check(Native.inlay_cache_create(engine, ref options, out cache, out error), error);
        return cache;
    }

    static void Append(SessionHandle session) {
        IntPtr error;
        Native.Check(Native.inlay_session_append_tokens(session, prompt, (UIntPtr)prompt.Length, out error), error);
    }

    static SessionHandle CreatePrompted(CacheHandle cache, ulong maxNewTokens) {
        var options = new Native.GenerationOptions {StructSize = Native.SizeOf<Native.GenerationOptions>(),
                                                    Flags = Native.IgnoreEnd, MaxNewTokens = maxNewTokens};
        SessionHandle session;
        IntPtr error;
        Native.Check(Native.inlay_session_create(cache, IntPtr.Zero, out session, out error), error);
        Native.Check(Native.inlay_session_set_generation(session, ref options, out error), error);
        Append(session);
        return session;
    }

    static int[] TokensOf(ref Native.Chunk chunk) {
        var tokens = new int[(int)chunk.TokenCount];
        if (tokens.Length > 0) Marshal.Copy(chunk.Tokens, tokens, 0, tokens.Length);
        return tokens;
    }

    static Native.Chunk EmptyChunk() { return new Native.Chunk {StructSize = Native.SizeOf<Native.Chunk>()}; }

    static int Next(SessionHandle session, List<int> tokens) {
        Native.Chunk chunk = EmptyChunk();
        IntPtr error;
        int status = Native.Check(Native.inlay_session_next(session, ref chunk, out error), error);
        tokens.AddRange(TokensOf(ref chunk));
        return status;
    }

    // The finish reason. An exception must not leave the callback: it is carried around the library.
    static int Run(SessionHandle session, Func<int[], string, bool> onChunk) {
        Exception thrown = null;
        Native.ChunkCallback callback = (IntPtr user, ref Native.Chunk chunk) => {
            try {
                return onChunk(TokensOf(ref chunk), Native.Utf8(chunk.Text, (int)chunk.TextSize)) ? 0 : 1;
            } catch (Exception exception) {
                thrown = exception;
                return 1;
            }
        };
        Native.Chunk last = EmptyChunk();
        IntPtr error;
        int status = Native.inlay_session_run(session, callback, IntPtr.Zero, ref last, out error);
        GC.KeepAlive(callback);
        if (thrown != null) {
            Native.inlay_error_release(error);
            throw thrown;
        }
        Native.Check(status, error);
        return last.FinishReason;
    }

    static int StatusOf(Action call) {
        try {
            call();
            return Native.Ok;
        } catch (InlayException exception) {
            return exception.Status;
        }
    }

    static void RequireExpected(SessionHandle session) {
        var tokens = new List<int>();
        int finish = Run(session, (more, text) => {
            GC.Collect();  // nothing that the call uses may move or go
            tokens.AddRange(more);
            return true;
        });
        Require(finish == Native.FinishLength && tokens.SequenceEqual(expected), "run gives the expected tokens");
    }

    // ---- the checks

    static void CheckVersion() {
        IntPtr error;
        string header = Native.Major + "." + Native.Minor + ".";
        Require(Native.Utf8(Native.inlay_version()).StartsWith(header), "the library has this binding's version");
        Native.Check(Native.inlay_check_abi(Native.Major, Native.Minor, out error), error);
        int later = StatusOf(() => Native.Check(Native.inlay_check_abi(Native.Major + 1, 0, out error), error));
        Require(later == Native.Unsupported, "a later major version is not served");
    }

    static void CheckMissingFile() {
        try {
            Open("/no/such/file.gguf");
            Require(false, "a missing file is an error");
        } catch (InlayException exception) {
            Require(exception.Status == Native.Io, "its status is INLAY_E_IO");
            Require(exception.Message.StartsWith("INLAY_E_IO: ") && exception.Message.Contains("/no/such/file.gguf"),
                    "the sentence names the file: " + exception.Message);
        }
    }

    static void CheckText(EngineHandle engine) {
        IntPtr error;
        UIntPtr needed;
        var info = new Native.EngineInfo {StructSize = Native.SizeOf<Native.EngineInfo>()};
        Native.Check(Native.inlay_engine_get_info(engine, ref info, out error), error);
        Require(info.Vocabulary == 384 && info.FileBytes == (ulong)new FileInfo(model).Length, "the engine's info");

        byte[] text = Encoding.UTF8.GetBytes("Grüße, 世界: 12 apples");
        Native.Check(Native.inlay_tokenize(engine, text, (UIntPtr)text.Length, 0, null, UIntPtr.Zero, out needed,
                                           out error), error);
        var tokens = new int[(int)needed];
        Native.Check(Native.inlay_tokenize(engine, text, (UIntPtr)text.Length, 0, tokens, needed, out needed,
                                           out error), error);
        Native.Check(Native.inlay_detokenize(engine, tokens, (UIntPtr)tokens.Length, 0, null, UIntPtr.Zero, out needed,
                                             out error), error);
        var back = new byte[(int)needed];
        Native.Check(Native.inlay_detokenize(engine, tokens, (UIntPtr)tokens.Length, 0, back, needed, out needed,
                                             out error), error);
        Require(back.SequenceEqual(text), "a text comes back from its tokens");
    }

    static void CheckNext(CacheHandle cache) {
        using (SessionHandle session = CreatePrompted(cache, GeneratedTokens)) {
            IntPtr error;
            var tokens = new List<int>();
            while (Next(session, tokens) != Native.End) {}
            Require(tokens.SequenceEqual(expected), "next gives the expected tokens");

            var stats = new Native.SessionStats {StructSize = Native.SizeOf<Native.SessionStats>()};
            Native.Check(Native.inlay_session_get_stats(session, ref stats, out error), error);
            Require(stats.PromptTokens == (ulong)prompt.Length && stats.GeneratedTokens == GeneratedTokens &&
                    stats.PromptNs > 0, "the session's stats");
            var held = new Native.CacheStats {StructSize = Native.SizeOf<Native.CacheStats>()};
            Native.Check(Native.inlay_cache_get_stats(cache, ref held, out error), error);
            Require(held.UsedBlocks > 0 && held.UsedBytes == held.UsedBlocks * held.BlockBytes, "the cache's stats");
        }
    }

    static void CheckCallback(CacheHandle cache) {
        RequireExpected(CreatePrompted(cache, GeneratedTokens));
        int n = 0;
        int status = StatusOf(() => Run(CreatePrompted(cache, GeneratedTokens), (tokens, text) => ++n < 3));
        Require(n == 3 && status == Native.Cancelled, "a callback stops the run");
        try {
            Run(CreatePrompted(cache, GeneratedTokens), (tokens, text) => { throw new FormatException("mine"); });
            Require(false, "a callback's exception comes out of the run");
        } catch (FormatException) {
        }
    }

    // Another thread: it is told that the session is busy, and then cancels.
    static void CheckCancel(CacheHandle cache) {
        SessionHandle session = CreatePrompted(cache, 0);
        int n = 0, busy = 0;
        int finish = Run(session, (tokens, text) => {
            if (++n > 1) return true;
            var other = new Thread(() => {
                busy = StatusOf(() => Append(session));
                Native.inlay_session_cancel(session);
            });
            other.Start();
            other.Join();
            return true;
        });
        Require(busy == Native.Busy, "a call during a call is told to wait");
        Require(n == 1 && finish == Native.FinishCancelled, "a cancelled run ends");
        var next = new List<int>();
        Next(session, next);
        Require(next.SequenceEqual(expected.Skip(1).Take(1)), "a cancelled session goes on");
    }

    static void CheckThreads(CacheHandle cache) {
        Exception thrown = null;
        var threads = Enumerable.Range(0, 8).Select(i => new Thread(() => {
            try {
                RequireExpected(CreatePrompted(cache, GeneratedTokens));
            } catch (Exception exception) {
                thrown = exception;
            }
        })).ToList();
        threads.ForEach(thread => thread.Start());
        threads.ForEach(thread => thread.Join());
        if (thrown != null) throw thrown;
    }

    // Parents first: children hold them.
    static void CheckRelease() {
        EngineHandle engine = Open(model);
        CacheHandle cache = CreateCache(engine);
        SessionHandle session = CreatePrompted(cache, GeneratedTokens);
        engine.Dispose();
        cache.Dispose();
        RequireExpected(session);
        session.Dispose();
    }

    // Forgotten handles go in whatever order the collector finds them. They are made on a thread that has ended, so
    // that nothing on a stack looks like them.
    static void CheckFinalizers() {
        const int rounds = 3;
        int before = Handle.Released;
        var maker = new Thread(() => {
            for (int i = 0; i < rounds; ++i) Next(CreatePrompted(CreateCache(Open(model)), 1), new List<int>());
        });
        maker.Start();
        maker.Join();
        for (int i = 0; Handle.Released < before + 3 * rounds && i < 500; ++i) {
            GC.Collect();
            GC.WaitForPendingFinalizers();
            Thread.Sleep(10);
        }
        Require(Handle.Released >= before + 3 * rounds, "forgotten handles are released");
    }

    // The numbers of a list in golden.json.
    static int[] Numbers(string json, string key) {
        int begin = json.IndexOf('[', json.IndexOf('"' + key + '"')) + 1;
        return json.Substring(begin, json.IndexOf(']', begin) - begin).Split(',').Select(int.Parse).ToArray();
    }

    static int Main(string[] arguments) {
        string folder = Path.Combine(arguments[0], "tiny", "llama");
        string golden = File.ReadAllText(Path.Combine(folder, "golden.json"));
        model = Path.Combine(folder, "llama.f16.gguf");
        prompt = Numbers(golden, "prompt_ids");
        expected = Numbers(golden, "greedy_ids").Take(GeneratedTokens).ToArray();

        CheckVersion();
        CheckMissingFile();
        EngineHandle engine = Open(model);
        CacheHandle cache = CreateCache(engine);
        CheckText(engine);
        CheckNext(cache);
        CheckCallback(cache);
        CheckCancel(cache);
        CheckThreads(cache);
        CheckRelease();
        CheckFinalizers();
        return 0;
    }
}
