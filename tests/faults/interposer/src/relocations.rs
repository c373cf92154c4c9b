//! The slots through which a loaded ELF library calls others.
//!
//! Each function that it imports has a relocation, which says by the symbol's name where the address is
//! to be put. The linker has done so; here the address is exchanged, in that library alone.

use std::ffi::{CStr, c_int, c_void};
use std::slice;

/// How the library comes by the address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Slot {
    /// The procedure linkage table: a call from C.
    Linkage,
    /// The global offset table: a call from Rust, or an address that C takes.
    Offset,
    /// A table in the library's data: SQLite's table of system calls.
    Data,
}

/// A function of ours, the name of what it stands for, and the slots it is put into.
#[derive(Clone, Copy)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    /// The only kind of slot, or nothing for all.
    only: Option<Slot>,
    pub(crate) slot: Slot,
    function: *const (),
}

impl Call {
    /// For all slots of this name.
    pub(crate) const fn all(name: &'static str, function: *const ()) -> Self {
        Self {
            name,
            only: None,
            slot: Slot::Data,
            function,
        }
    }

    /// For one kind of slot.
    pub(crate) const fn through(slot: Slot, name: &'static str, function: *const ()) -> Self {
        Self {
            name,
            only: Some(slot),
            slot,
            function,
        }
    }

    fn is_for(&self, name: &[u8], slot: Slot) -> bool {
        self.name.as_bytes() == name && self.only.is_none_or(|only| only == slot)
    }
}

type Replaced = Vec<(&'static str, Slot)>;

struct Search<'a> {
    path: &'a [u8],
    calls: &'a [Call],
    replaced: Option<Replaced>,
}

/// Puts functions into the slots of the library at `path`; which, or nothing if it is not loaded.
///
/// # Safety
///
/// Each function may stand for what its name says; no other thread is in the library.
pub(crate) unsafe fn replace(path: &[u8], calls: &[Call]) -> Option<Replaced> {
    let mut search = Search {
        path,
        calls,
        replaced: None,
    };
    // SAFETY: the callback takes what it is given here, and the search outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.replaced
}

unsafe extern "C" fn visit(
    library: *mut libc::dl_phdr_info,
    _size: usize,
    search: *mut c_void,
) -> c_int {
    // SAFETY: as `replace` and the linker give it.
    unsafe {
        let library = &*library;
        let search = &mut *search.cast::<Search<'_>>();
        if CStr::from_ptr(library.dlpi_name).to_bytes() != search.path {
            return 0;
        }
        search.replaced = replace_in(library, search.calls);
        1
    }
}

/// The tags of the dynamic section that are looked at (`elf.h`).
const DT_PLTRELSZ: i64 = 2;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_JMPREL: i64 = 23;

/// The relocations of functions on x86-64.
const R_X86_64_64: u32 = 1;
const R_X86_64_GLOB_DAT: u32 = 6;
const R_X86_64_JUMP_SLOT: u32 = 7;

#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

/// # Safety
///
/// A loaded library, as the linker describes it; see [`replace`].
unsafe fn replace_in(library: &libc::dl_phdr_info, calls: &[Call]) -> Option<Replaced> {
    let base = library.dlpi_addr;
    // SAFETY: the program headers are as many as is said.
    let headers = unsafe { slice::from_raw_parts(library.dlpi_phdr, library.dlpi_phnum.into()) };
    let header = headers
        .iter()
        .find(|header| header.p_type == libc::PT_DYNAMIC)?;
    let dynamic = (base + header.p_vaddr) as *const Dynamic;
    let value = |wanted: i64| {
        // SAFETY: the section ends with the tag zero.
        unsafe {
            (0..)
                .map(|index| &*dynamic.add(index))
                .take_while(|entry| entry.tag != 0)
                .find(|entry| entry.tag == wanted)
                .map(|entry| entry.value)
        }
    };
    // The linker may have made them addresses already.
    let address =
        |wanted: i64| value(wanted).map(|found| if found < base { base + found } else { found });
    let symbols = address(DT_SYMTAB)? as *const libc::Elf64_Sym;
    let names = address(DT_STRTAB)? as *const libc::c_char;
    let mut replaced = Vec::new();
    for (table, size) in [(DT_RELA, DT_RELASZ), (DT_JMPREL, DT_PLTRELSZ)] {
        let (Some(start), Some(bytes)) = (address(table), value(size)) else {
            continue;
        };
        let count = bytes as usize / size_of::<libc::Elf64_Rela>();
        // SAFETY: the relocations are as many as is said.
        let relocations = unsafe { slice::from_raw_parts(start as *const libc::Elf64_Rela, count) };
        for relocation in relocations {
            let slot = match relocation.r_info as u32 {
                R_X86_64_64 => Slot::Data,
                R_X86_64_GLOB_DAT => Slot::Offset,
                R_X86_64_JUMP_SLOT => Slot::Linkage,
                _ => continue,
            };
            // SAFETY: a relocation names a symbol of the table, and that a text.
            let name = unsafe {
                let symbol = &*symbols.add((relocation.r_info >> 32) as usize);
                CStr::from_ptr(names.add(symbol.st_name as usize)).to_bytes()
            };
            if let Some(call) = calls.iter().find(|call| call.is_for(name, slot)) {
                // SAFETY: where the linker has put the address; see `replace`.
                unsafe {
                    put(
                        (base + relocation.r_offset) as *mut *const (),
                        call.function,
                    )?
                };
                replaced.push((call.name, slot));
            }
        }
    }
    Some(replaced)
}

/// # Safety
///
/// `slot` holds the address of a function that `function` may stand for.
unsafe fn put(slot: *mut *const (), function: *const ()) -> Option<()> {
    // SAFETY: asks only.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let start = slot as usize / page * page;
    // The linker has made the slots read-only.
    // SAFETY: the page of the slot is data of the library; nothing relies on its being read-only.
    unsafe {
        if libc::mprotect(
            start as *mut c_void,
            page,
            libc::PROT_READ | libc::PROT_WRITE,
        ) != 0
        {
            return None;
        }
        slot.write(function);
    }
    Some(())
}
