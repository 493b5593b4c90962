// A binding as a C# program would write it for itself: what the checks in Client.cs call, and no more.
using System;
using System.Runtime.InteropServices;
using System.Text;
using System.Threading;

static class Native {
    public const uint Major = 0, Minor = 1;
    public const int Ok = 0, End = 1, More = 2;
    public const int Io = -3, Unsupported = -5, Busy = -6, Cancelled = -7;
    public const int FinishLength = 2, FinishCancelled = 4;
    public const int ComputeF32 = 1, KvF32 = 1;
    public const uint IgnoreEnd = 1;

    [StructLayout(LayoutKind.Sequential)]
    public struct EngineOptions {
        public uint StructSize, Flags, Threads;
        public int Compute, InstructionSet;
        public uint MaxStepTokens;
        public IntPtr Progress, ProgressUser;
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct EngineInfo {
        public uint StructSize, Vocabulary, Layers, Embedding, Heads, KvHeads, HeadDim, ContextTokens, Threads;
        public int Compute, InstructionSet;
        public uint MaxStepTokens;
        public ulong Tensors, Parameters, FileBytes, WeightBytes, ScratchBytes;
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct CacheOptions {
        public uint StructSize, Flags;
        public ulong Bytes;
        public int KeyType, ValueType;
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct CacheStats {
        public uint StructSize, BlockTokens;
        public ulong BudgetBytes, BlockBytes, Blocks, UsedBlocks, CachedBlocks, FreeBlocks, SharedBlocks, UsedBytes;
        public ulong TableBytes, PrefixHits, ReusedTokens, EvictedBlocks;
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct GenerationOptions {
        public uint StructSize, Flags;
        public ulong Seed;
        public float Temperature, TopP, MinP;
        public uint TopK;
        public ulong MaxNewTokens;
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct Chunk {
        public uint StructSize;
        public int FinishReason;
        public IntPtr Tokens;
        public UIntPtr TokenCount;
        public IntPtr Text;
        public UIntPtr TextSize;
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct SessionStats {
        public uint StructSize, Reserved;
        public ulong PromptTokens, ReusedTokens, ComputedTokens, RecomputedTokens, GeneratedTokens, Steps;
        public ulong PromptNs, GenerationNs;
    }

    [UnmanagedFunctionPointer(CallingConvention.Cdecl)]
    public delegate int ChunkCallback(IntPtr user, ref Chunk chunk);

    const string Library = "inlay";
    const CallingConvention C = CallingConvention.Cdecl;

    [DllImport(Library, CallingConvention = C)] public static extern IntPtr inlay_version();
    [DllImport(Library, CallingConvention = C)] public static extern IntPtr inlay_status_name(int status);
    [DllImport(Library, CallingConvention = C)]
    public static extern int inlay_check_abi(uint major, uint minor, out IntPtr error);
    [DllImport(Library, CallingConvention = C)] public static extern int inlay_error_code(IntPtr error);
    [DllImport(Library, CallingConvention = C)] public static extern IntPtr inlay_error_message(IntPtr error);
    [DllImport(Library, CallingConvention = C)] public static extern void inlay_error_release(IntPtr error);

    [DllImport(Library, CallingConvention = C)]
    public static extern int inlay_engine_open(byte[] path, UIntPtr size, ref EngineOptions options,
                                               out EngineHandle engine, out IntPtr error);
    [DllImport(Library, CallingConvention = C)] public static extern void inlay_engine_release(IntPtr engine);
    [DllImport(Library, CallingConvention = C)]
    public static extern int inlay_engine_get_info(EngineHandle engine, ref EngineInfo info, out IntPtr error);
    [DllImport(Library, CallingConvention = C)]
    public static extern int inlay_tokenize(EngineHandle engine, byte[] text, UIntPtr size, uint flags, int[] tokens,
                                            UIntPtr capacity, out UIntPtr needed, out IntPtr error);
    [DllImport(Library, CallingConvention = C)]
    public static extern int inlay_detokenize(EngineHandle engine, int[] tokens, UIntPtr count, uint flags,
                                              byte[] buffer, UIntPtr capacity, out UIntPtr needed, out IntPtr error);

    [DllImport(Library, CallingConvention = C)]
    public static extern int inlay_cache_create(EngineHandle engine, ref CacheOptions options, out CacheHandle cache,
                                                out IntPtr error);
    [DllImport(Library, CallingConvention = C)] public static extern void inlay_cache_release(IntPtr cache);
    [DllImport(Library, CallingConvention = C)]
    public static extern int inlay_cache_get_stats(CacheHandle cache, ref CacheStats stats, out IntPtr error);

    [DllImport(Library, CallingConvention = C)]
    public static extern int inlay_session_create(CacheHandle cache, IntPtr options, out SessionHandle session,
                                                  out IntPtr error);
    [DllImport(Library, CallingConvention = C)] public static extern void inlay_session_release(IntPtr session);
    [DllImport(Library, CallingConvention = C)]
    public static extern int inlay_session_set_generation(SessionHandle session, ref GenerationOptions options,
                                                          out IntPtr error);
    [DllImport(Library, CallingConvention = C)]
    public static extern int inlay_session_append_tokens(SessionHandle session, int[] tokens, UIntPtr count,
                                                         out IntPtr error);
    [DllImport(Library, CallingConvention = C)]
    public static extern int inlay_session_next(SessionHandle session, ref Chunk chunk, out IntPtr error);
    [DllImport(Library, CallingConvention = C)]
    public static extern int inlay_session_run(SessionHandle session, ChunkCallback onChunk, IntPtr user,
                                               ref Chunk last, out IntPtr error);
    [DllImport(Library, CallingConvention = C)] public static extern void inlay_session_cancel(SessionHandle session);
    [DllImport(Library, CallingConvention = C)]
    public static extern int inlay_session_get_stats(SessionHandle session, ref SessionStats stats, out IntPtr error);

    public static uint SizeOf<T>() { return (uint)Marshal.SizeOf(typeof(T)); }

    public static string Utf8(IntPtr text) {
        int size = 0;
        while (Marshal.ReadByte(text, size) != 0) ++size;
        return Utf8(text, size);
    }

    public static string Utf8(IntPtr text, int size) {
        var bytes = new byte[size];
        if (size > 0) Marshal.Copy(text, bytes, 0, size);
        return Encoding.UTF8.GetString(bytes);
    }

    // Outcomes pass; an error becomes an exception. The object is the caller's: it is read and released here.
    public static int Check(int status, IntPtr error) {
        if (status >= 0) return status;
        var exception = new InlayException(inlay_error_code(error), Utf8(inlay_error_message(error)));
        inlay_error_release(error);
        throw exception;
    }
}

class InlayException : Exception {
    public readonly int Status;

    public InlayException(int status, string sentence)
        : base(Native.Utf8(Native.inlay_status_name(status)) + ": " + sentence) {
        Status = status;
    }
}

// A call keeps its handle alive; what nobody holds any more is released by the collector's thread, in any order.
abstract class Handle : SafeHandle {
    public static int Released;

    protected Handle() : base(IntPtr.Zero, true) {}
    public override bool IsInvalid { get { return handle == IntPtr.Zero; } }
    protected abstract void Release();
    protected override bool ReleaseHandle() {
        Release();
        Interlocked.Increment(ref Released);
        return true;
    }
}

class EngineHandle : Handle {
    protected override void Release() { Native.inlay_engine_release(handle); }
}

class CacheHandle : Handle {
    protected override void Release() { Native.inlay_cache_release(handle); }
}

class SessionHandle : Handle {
    protected override void Release() { Native.inlay_session_release(handle); }
}
